// Time that the page's own thread had on a processor: what else the machine does is not in it.
import { readdirSync, readFileSync } from 'node:fs';

function parentOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function attempt(ask) {
  try {
    return ask();
  } catch {
    return null;                     // it ended meanwhile
  }
}

// Processes that this one started, at any remove, and that draw pages.
export function renderers() {
  const all = readdirSync('/proc').filter(name => /^\d+$/.test(name)).map(Number), ours = new Set([process.pid]);
  for (let before = 0; before < ours.size;) {
    before = ours.size;
    for (const pid of all)
      if (ours.has(attempt(() => parentOf(pid))))
        ours.add(pid);
  }
  return [...ours].filter(pid => attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.includes('--type=renderer'));
}

// Milliseconds until now, of the busiest.
export function mainThreadMs(pids) {
  return Math.max(...pids.map(pid => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]))) / 1e6;
}
