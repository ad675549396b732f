// What the tests of the page look at: dumps of real programs, pages made of them, and the numbers of the command line.
//
// In the environment: HEAPGAUGE, the program; GROW_JEMALLOC (tests/cli/grow.c) and LEAKY (examples/leaky.c); SOURCE,
// the top of the source tree.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const { HEAPGAUGE, GROW_JEMALLOC, LEAKY, SOURCE } = process.env;
export const folder = mkdtempSync(join(tmpdir(), 'page-'));
process.chdir(folder);

const running = new Set();

export function cleanUp() {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

const environment = { ...process.env, HEAPGAUGE_CACHE: 'off', LC_ALL: 'C.UTF-8', NO_COLOR: '1', DEBUGINFOD_URLS: '' };
for (const name of ['HEAPGAUGE_TOKEN_FILE', 'HEAPGAUGE_AGENT', 'MALLOC_CONF', 'LD_PRELOAD']) delete environment[name];
const quiet = {
  encoding: 'utf8',
  maxBuffer: 1 << 28,
  stdio: ['ignore', 'pipe', 'pipe'],
  env: environment,
  timeout: 60_000,
};

export function heapgauge(...args) {
  return execFileSync(HEAPGAUGE, args, quiet);
}

// What top says: the whole of its JSON.
export function top(...args) {
  return JSON.parse(heapgauge('top', '--json', '-n', '0', ...args));
}

export function rowOf(report, name) {
  return report.rows.find(row => row.name === name);
}

const KIB = 1024;

// What a number of bytes looks like: three digits and a unit.
export function bytesText(value) {
  const size = Math.abs(value),
    sign = value < 0 ? '-' : '';
  if (size < 1023.5) return `${sign}${Math.round(size)} B`;
  const [scaled, unit] = size < 1023.5 * KIB ? [size / KIB, 'KiB'] : [size / KIB / KIB, 'MiB'];
  return `${sign}${scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0)} ${unit}`;
}

// In a shell, as one would paste it, with heapgauge on the PATH.
export function shell(command) {
  const made = spawnSync('bash', ['-c', `heapgauge() { "${HEAPGAUGE}" "$@"; }; ${command}`], quiet);
  return { status: made.status, out: made.stdout, err: made.stderr };
}

export function has(command) {
  return spawnSync('bash', ['-c', `command -v ${command}`]).status === 0;
}

export function start(command, args, more = {}) {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...more,
    env: { ...environment, ...more.env },
  });
  running.add(child);
  child.said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', data => {
      child.said += data;
    });
  child.ended = new Promise(done =>
    child.on('exit', (code, signal) => {
      running.delete(child);
      done({ code, signal });
    }),
  );
  return child;
}

export async function until(what, test, seconds = 20) {
  for (const end = Date.now() + seconds * 1000; ;) {
    const got = await test();
    if (got) return got;
    if (Date.now() > end) throw new Error(`after ${seconds} s still not: ${what}`);
    await new Promise(done => setTimeout(done, 50));
  }
}

export async function said(child, pattern, seconds = 20) {
  return until(
    `${child.spawnfile} says ${pattern}`,
    () => {
      if (child.exitCode !== null && !pattern.test(child.said))
        throw new Error(`${child.spawnfile} ended with ${child.exitCode}: ${child.said}`);
      return pattern.exec(child.said);
    },
    seconds,
  );
}

// Dumps by the number that jemalloc gave them.
function dumpsOf(prefix) {
  const number = name => Number(name.split('.').at(-3));
  return readdirSync('.')
    .filter(name => name.startsWith(`${prefix}.`) && name.endsWith('.heap'))
    .sort((a, b) => number(a) - number(b));
}

// A dump of tests/cli/grow.c at its end: blocks of 1024 bytes from stay_here, of 3072 from grow_here.
export function growDump(prefix, stay, grow, lgSample = 0) {
  execFileSync(GROW_JEMALLOC, [String(stay), String(grow)], {
    env: { ...environment, MALLOC_CONF: `prof:true,prof_final:true,lg_prof_sample:${lgSample},prof_prefix:${prefix}` },
  });
  return dumpsOf(prefix)[0];
}

// Redis under load: as many dumps of one process, oldest first.
export async function redisDumps(prefix, count = 5) {
  const server = start(
    'redis-server',
    ['--port', '0', '--unixsocket', `${folder}/redis`, '--save', '', '--enable-debug-command', 'local'],
    {
      env: {
        MALLOC_CONF: `prof:true,prof_final:true,lg_prof_sample:14,lg_prof_interval:22,prof_prefix:${folder}/${prefix}`,
      },
    },
  );
  const redis = (...words) => execFileSync('redis-cli', ['-s', `${folder}/redis`, ...words], quiet);
  await until('redis answers', () => spawnSync('redis-cli', ['-s', `${folder}/redis`, 'ping'], quiet).status === 0);
  redis('debug', 'populate', '20000', 'text', '300');
  redis('eval', 'for i = 1, 20000 do redis.call("rpush", "list" .. i % 500, string.rep("x", 100)) end', '0');
  redis('eval', 'for i = 1, 10000 do redis.call("hset", "hash" .. i % 300, i, "value" .. i) end', '0');
  redis('flushall');
  redis('debug', 'populate', '15000', 'more', '500');
  redis('eval', 'for i = 1, 15000 do redis.call("sadd", "set" .. i % 200, "member" .. i) end', '0');
  spawnSync('redis-cli', ['-s', `${folder}/redis`, 'shutdown', 'nosave'], quiet);
  await server.ended;
  const all = dumpsOf(prefix);
  // Spread over the life, the first and the last among them.
  return Array.from({ length: count }, (_, i) => all[Math.round((i * (all.length - 1)) / (count - 1))]);
}

// The little shop that leaks, with the names of its threads: dumps of one process, oldest first.
export function leakyDumps(prefix, count = 3) {
  execFileSync(
    HEAPGAUGE,
    ['run', '-q', '-d', `${folder}/${prefix}`, '--rate', '16k', '--every', '64m', '--accum', '--', LEAKY, '12000'],
    { ...quiet, env: { ...environment, MALLOC_CONF: 'prof_sys_thread_name:true' } },
  );
  const number = name => Number(name.split('.').at(-3));
  const all = readdirSync(prefix)
    .filter(name => name.endsWith('.heap'))
    .sort((a, b) => number(a) - number(b))
    .map(name => `${prefix}/${name}`);
  return Array.from({ length: count }, (_, i) => all[Math.round((i * (all.length - 1)) / (count - 1))]);
}

export function pageOf(name, ...args) {
  heapgauge('flame', '-o', name, ...args);
  return `file://${folder}/${name}`;
}

// heapgauge view: its process and address.
export async function serve(...args) {
  const child = start(HEAPGAUGE, ['view', '--no-browser', ...args]);
  const [url] = await said(child, /http:\/\/\S+/);
  return { child, url };
}
