// A recorder for the tests of its page: heapgauge record itself, profiles of a known past that are pushed to it, and programs that
// it scrapes.
//
// In the environment, besides that of profiles.mjs: SERVER (examples/server.c).
import { createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { at, settled } from './browser.mjs';
import { folder, HEAPGAUGE, said, start, until } from './profiles.mjs';

export const { SERVER } = process.env;
export const [MINUTE, HOUR] = [60_000, 3_600_000];

// --- pprof, by hand ---

function varint(value) {
  const out = [];
  let n = BigInt(value);
  for (; n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  out.push(Number(n));
  return Buffer.from(out);
}

const field = (number, value) => Buffer.concat([varint(number << 3), varint(value)]);
const bytes = (number, data) => Buffer.concat([varint((number << 3) | 2), varint(data.length), data]);
const packed = (number, values) => bytes(number, Buffer.concat(values.map(varint)));
const message = (number, ...parts) => bytes(number, Buffer.concat(parts));

const BLOCK = 1024; // bytes of every block

// time in ms; stacks: { "main;serve;cache_put": bytes in use }. Every allocation was sampled: values are exact. A process is known by where
// it was loaded, a build by its id.
export function pprof({ time, stacks, process, build }) {
  const strings = ['', 'inuse_objects', 'count', 'inuse_space', 'bytes', 'space', '/srv/shop', build];
  const names = [...new Set(Object.keys(stacks).flatMap(stack => stack.split(';')))];
  const base = BigInt(0x550000000000) + BigInt(process) * 0x1000000n;
  const out = [
    message(1, field(1, 1), field(2, 2)),
    message(1, field(1, 3), field(2, 4)),
    ...Object.entries(stacks).map(([stack, size]) =>
      message(
        2,
        packed(
          1,
          stack
            .split(';')
            .reverse()
            .map(name => names.indexOf(name) + 1),
        ),
        packed(2, [Math.round(size / BLOCK), Math.round(size / BLOCK) * BLOCK]),
      ),
    ),
    message(3, field(1, 1), field(2, base), field(3, base + 0x100000n), field(5, 6), field(6, 7), field(7, 1)),
    ...names.flatMap((name, i) => [
      message(4, field(1, i + 1), field(2, 1), field(3, base + BigInt(0x1000 + 64 * i)), message(4, field(1, i + 1), field(2, 1 + i))),
      message(5, field(1, i + 1), field(2, strings.length + i), field(3, strings.length + i)),
    ]),
    ...[...strings, ...names].map(text => bytes(6, Buffer.from(text))),
    field(9, BigInt(Math.round(time)) * 1_000_000n),
    message(11, field(1, 5), field(2, 4)),
    field(12, 1),
  ];
  return gzipSync(Buffer.concat(out));
}

export async function push(url, labels, profile) {
  const query = new URLSearchParams(labels);
  const answer = await fetch(`${url}api/v1/push?${query}`, { method: 'POST', body: profile });
  if (!answer.ok) throw new Error(`push of ${query}: ${answer.status} ${await answer.text()}`);
}

// Lists of things to push, a few at a time.
export async function pushAll(url, list) {
  const queues = new Map();
  for (const one of list) {
    const key = JSON.stringify(one.labels);
    queues.set(key, [...(queues.get(key) ?? []), one]);
  }
  await Promise.all(
    [...queues.values()].map(async queue => {
      for (const { labels, ...profile } of queue) await push(url, labels, pprof(profile));
    }),
  );
}

// --- the recorder ---

export function freePort() {
  return new Promise((done, failed) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
    server.on('error', failed);
  });
}

// On that port, with a store of its own; targets: addresses of profiles.
export async function record(port, store, ...targets) {
  const child = start(HEAPGAUGE, ['record', '--listen', `127.0.0.1:${port}`, '--store', `${folder}/${store}`, '--interval', '1s', ...targets]);
  const url = `http://127.0.0.1:${port}/`;
  await until('the recorder is ready', async () => {
    if (child.exitCode !== null) throw new Error(`heapgauge record ended with ${child.exitCode}: ${child.said}`);
    return fetch(`${url}-/ready`).then(
      answer => answer.ok,
      () => false,
    );
  });
  return { child, url };
}

export async function end(child, signal = 'SIGTERM') {
  child.kill(signal);
  return child.ended;
}

// The web server that remembers each visit, 16 kB at a time, with an endpoint of its own at that port.
export async function visited(endpoint) {
  const child = start(SERVER, ['0', `127.0.0.1:${endpoint}`], { env: { MALLOC_CONF: 'lg_prof_sample:0' } });
  const [, address] = await said(child, /listening on (\S+)/);
  const visit = async times => {
    for (let i = 0; i < times; i++) await fetch(`${address}/visit/${i}`).then(answer => answer.text());
  };
  return { child, visit };
}

// Until the answer to the last change is there.
export async function answered(page) {
  await page.waitForTimeout(150);
  await until('the page has its answers', async () => (await at(page, 'pending').innerText()) === '');
  await settled(page);
}
