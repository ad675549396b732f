// Six hours that a recorder is told of, so that what its page has to show is known.
import { HOUR, MINUTE } from './recorder.mjs';

const STEP = 2 * MINUTE;
export const MIB = 1024 * 1024;
const RATE = 6 * MIB; // of the leak, an hour
const HOSTILE = '<img src=x onerror=alert(1)>"\\\u202e{}';

// Six hours up to some minutes ago. web:1: a leak; three hours ago a deploy, one hour ago a restart, and each begins anew; from 2:30 to 2:00
// ago nobody recorded. web:2: one process, and nothing leaks.
export const now = Date.now();
const first = Math.floor((now - 6 * HOUR) / STEP) * STEP + STEP;
const times = Array.from({ length: Math.floor((now - first) / STEP) }, (_, i) => first + i * STEP);
export const [deploy, restart] = [3 * HOUR, HOUR].map(ago => times.find(time => time >= now - ago));
const silent = time => time > now - 2.5 * HOUR && time < now - 2 * HOUR;
const WEB1 = { job: 'shop', instance: 'web:1' };
const WEB2 = { job: 'shop', instance: 'web:2' };
const ODD = { job: HOSTILE, instance: 'x' };

export function web1(time) {
  const began = time < deploy ? first : time < restart ? deploy : restart;
  const grown = Math.round(((time - began) / HOUR) * (RATE / 1024)) * 1024;
  return { 'main;serve;cache_put': 2 * MIB + grown, 'main;init;load_table': 10 * MIB, 'main;serve;parse': (3 + ((time / STEP) % 5)) * 1024 };
}

export function web2(time) {
  return { 'main;init;load_table': 10 * MIB, 'main;serve;parse': (40 + ((time / STEP) % 7)) * 1024 };
}

export const sum = stacks => Object.values(stacks).reduce((all, value) => all + value, 0);
export const mean = list => list.reduce((all, value) => all + value, 0) / list.length;

export function past() {
  const shop = known.flatMap(time => {
    const process = time < deploy ? 1 : time < restart ? 2 : 3;
    return [
      { labels: WEB1, time, stacks: web1(time), process, build: time < deploy ? 'aaaa1111' : 'bbbb2222' },
      { labels: WEB2, time, stacks: web2(time), process: 9, build: 'aaaa1111' },
    ];
  });
  return [...shop, { labels: ODD, time: now - MINUTE, stacks: { 'main;odd': MIB }, process: 11, build: 'cccc3333' }];
}

export const known = times.filter(time => !silent(time));
export const lastBefore = time => known.filter(one => one < time).at(-1);
