// What the recorder's page computes itself: ranges of time, conditions on labels, gaps, the order of questions and answers, and that
// an address brings back what was looked at.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importSource } from '../bench/tools.mjs';
import { Random } from './profiles.mjs';

// As much of a browser as the settings need.
const listeners = {}, written = [];
globalThis.location = { hash: '', href: 'http://127.0.0.1:1/' };
globalThis.history = {
  pushState: (_state, _title, hash) => written.push(['push', hash]), replaceState: (_state, _title, hash) => written.push(['replace', hash]),
};
globalThis.addEventListener = (name, run) => { listeners[name] = run; };

const page = await importSource(`
  export * as times from './src/recorder/times'; export * as selector from './src/recorder/selector';
  export * as lines from './src/recorder/lines'; export * as health from './src/recorder/health';
  export * as ask from './src/recorder/ask'; export * as api from './src/recorder/api';
  export { Question } from './src/recorder/question';
  export * as s from './src/settings'; export * as r from './src/recorder/settings';`);
const { times, selector, lines, health, ask, api, Question, s, r } = page;
const { HOUR, DAY, MINUTE } = times, NOW = Date.UTC(2026, 10, 21, 12);

test('bounds: what is written is read', () => {
  for (const [text, ms] of [['now', 0], ['now-6h', 6 * HOUR], ['now-90m', 90 * MINUTE], ['now - 7d', 7 * DAY], ['now-2w', 14 * DAY]])
    assert.deepEqual(times.parseBound(text), { relative: true, ms }, text);
  for (const [text, ms] of [
    ['2026-11-21 12:00', NOW], ['2026-11-21T12:00:00Z', NOW], ['2026-11-21T13:00:00+01:00', NOW], ['2026-11-21', NOW - 12 * HOUR],
    [String(NOW), NOW], ['2026-11-21 12:00:00.250', NOW + 250], [' 2026-11-21 12:00 UTC ', NOW],
  ])
    assert.deepEqual(times.parseBound(text), { relative: false, ms }, text);
  for (const text of ['', 'then', 'now+1h', 'now-', 'now-6', 'now-6y', '2026-13-01', '2026-11-21 25:00', '-1', '12', 'now-99999999999d', '1e12',
    '9'.repeat(16)])
    assert.equal(times.parseBound(text), undefined, text);
});

test('ranges go through their text, whatever they are', () => {
  const any = new Random(7);
  for (let i = 0; i < 2000; i++) {
    const bound = () => any.chance(50) ? { relative: true, ms: any.below(400) * any.of([1, 1000, MINUTE, HOUR, DAY]) }
      : { relative: false, ms: NOW - any.below(1e9) * 1000 };
    const range = { from: bound(), to: bound() };
    assert.deepEqual(times.parseBound(times.boundText(range.from)), range.from);
    assert.deepEqual(times.parseBound(times.typedBound({ relative: false, ms: Math.floor(range.to.ms / 1000) * 1000 + 1e12 })),
      { relative: false, ms: Math.floor(range.to.ms / 1000) * 1000 + 1e12 });
    const { from, to } = times.span(range, NOW);
    assert.deepEqual(times.parseRange(times.rangeText(range), NOW), from < to && to - from <= times.LONGEST ? range : undefined);
  }
  for (const text of ['now..now-6h', 'now-6h', 'now-6h..now..now', '..', 'now..now', `${NOW}..${NOW - 1}`])
    assert.equal(times.parseRange(text, NOW), undefined, text);
});

test('zooming and moving: not beyond now, not shorter than the shortest, the length stays', () => {
  const of = { from: NOW - 6 * HOUR, to: NOW };
  assert.deepEqual(times.zoomed(of, 2, NOW), { from: NOW - 12 * HOUR, to: NOW });
  assert.deepEqual(times.zoomed(of, 0.5, NOW), { from: NOW - 4.5 * HOUR, to: NOW - 1.5 * HOUR });
  const short = times.zoomed({ from: NOW - 99020, to: NOW - 99000 }, 0.1, NOW);
  assert.equal(short.to - short.from, times.SHORTEST);
  assert.deepEqual(times.moved(of, 0.5, NOW), of);
  assert.deepEqual(times.moved(of, -0.5, NOW), { from: NOW - 9 * HOUR, to: NOW - 3 * HOUR });
  assert.deepEqual(times.moved({ from: NOW - 7 * HOUR, to: NOW - HOUR }, 0.5, NOW), of);
  const window = { from: 0, to: 1e6 };
  assert.deepEqual(times.withEnd({ from: 1e5, to: 2e5 }, 'from', 5e5, window), { from: 1.9e5, to: 2e5 });
  assert.deepEqual(times.withEnd({ from: 1e5, to: 2e5 }, 'from', -5, window), { from: 0, to: 2e5 });
  assert.deepEqual(times.withEnd({ from: 1e5, to: 2e5 }, 'to', 5e6, window), { from: 1e5, to: 1e6 });
  assert.deepEqual(times.withEnd({ from: 1e5, to: 2e5 }, 'to', 0, window), { from: 1e5, to: 1.1e5 });
  assert.equal(times.within({ from: -5, to: 0 }, window), null);
  assert.deepEqual(times.within({ from: -5, to: 10 }, window), { from: 0, to: 10 });
});

test('times as people read them', () => {
  assert.equal(times.momentText(NOW + 5000), '2026-11-21 12:00:05');
  assert.equal(times.spanText({ from: NOW, to: NOW + HOUR }), '2026-11-21 12:00:00 to 13:00:00 UTC');
  assert.equal(times.spanText({ from: NOW, to: NOW + DAY }), '2026-11-21 12:00:00 to 2026-11-22 12:00:00 UTC');
  assert.equal(times.momentText(NaN), '?');
  assert.deepEqual([0, 5000, 5 * MINUTE, 3 * HOUR, 3 * DAY].map(times.agoText), ['now', '5 s ago', '5 min ago', '3 h ago', '3 days ago']);
});

test('selectors: what is written is read, whatever names and values hold', () => {
  const any = new Random(11), pieces = ['a', 'job', '"', '\\', '\n', ',', '{', '}', '=', '~', '<b>', ' ', '\u202e', 'é', 'x1'];
  const word = () => Array.from({ length: 1 + any.below(5) }, () => any.of(pieces)).join('');
  for (let i = 0; i < 3000; i++) {
    const list = Array.from({ length: any.below(5) }, () => ({ name: word(), operator: any.of(selector.OPERATORS), value: any.chance(20) ? '' : word() }));
    assert.deepEqual(selector.parseSelector(selector.selectorText(list)), list);
    assert.deepEqual(selector.parseSelector(` {${selector.selectorText(list)}} `), list);
  }
  assert.deepEqual(selector.parseSelector(''), []);
  assert.deepEqual(selector.parseSelector('{a="b",}'), [{ name: 'a', operator: '=', value: 'b' }]);
  for (const text of ['a', 'a=', 'a=b', '="b"', 'a="b', 'a=="b"', 'a="b" c="d"', '{a="b"', 'a="b",,c="d"', ',', '""="x"', '1a="b"'])
    assert.equal(selector.parseSelector(text), undefined, text);
  const many = Array.from({ length: selector.MATCHERS_MAX + 1 }, (_, i) => ({ name: `a${i}`, operator: '=', value: '' }));
  assert.equal(selector.parseSelector(selector.selectorText(many)), undefined);
  assert.deepEqual(selector.parseTyped(' job=shop '), [{ name: 'job', operator: '=', value: 'shop' }]);
  assert.deepEqual(selector.parseTyped('job=~web.*'), [{ name: 'job', operator: '=~', value: 'web.*' }]);
  assert.deepEqual(selector.parseTyped('job="a b",x!="y"').length, 2);
});

test('one more value of a label: any of them, as they are written', () => {
  const labels = ['a.b', 'a|b', '(x', 'plain', 'axb'], one = [{ name: 'job', operator: '=', value: 'x' }];
  let list = one;
  for (const value of labels.slice(0, 4))
    list = selector.withValue(list, 'instance', value);
  assert.equal(list.length, 2);
  for (const [value, yes] of [...labels.slice(0, 4).map(value => [value, true]), ['axb', false], ['a', false], ['', false]])
    assert.equal(selector.matchesAll({ job: 'x', instance: value }, list), yes, value);
  assert.equal(selector.matchesAll({ job: 'x' }, [{ name: 'gone', operator: '=', value: '' }]), true);
  assert.equal(selector.matchesAll({ job: 'x' }, [{ name: 'toString', operator: '=', value: '' }]), true);
  assert.equal(selector.matchesAll({ job: 'x' }, [{ name: 'job', operator: '!~', value: 'x|y' }]), false);
  assert.equal(selector.matchesAll({ job: 'x' }, [{ name: 'job', operator: '=~', value: '(' }]), false);
});

test('choices: job and instance first, all words have to be found', () => {
  const series = [{ job: 'shop', instance: 'web:1', zone: 'a' }, { job: 'shop', instance: 'web:2', zone: 'b' }, { job: 'db', instance: 'db:1', zone: 'b' }]
    .map(labels => ({ labels }));
  const said = typed => selector.choicesOf(series, typed, 99).map(({ name, value, series: n }) => `${name}=${value} ${n}`);
  assert.deepEqual(said(''), ['job=shop 2', 'job=db 1', 'instance=db:1 1', 'instance=web:1 1', 'instance=web:2 1', 'zone=b 2', 'zone=a 1']);
  assert.deepEqual(said('WEB'), ['instance=web:1 1', 'instance=web:2 1']);
  assert.deepEqual(said('inst="web:2'), ['instance=web:2 1']);
  assert.deepEqual(said('nothing'), []);
  assert.equal(selector.choicesOf(series, '', 2).length, 2);
});

test('gaps are gaps: lines are not drawn across silence, and are across what is usual there', () => {
  const at = [0, 10, 20, 30, 40, 200, 210, 220], value = at.map((_, i) => i);
  const line = lines.lineOf(at, value, 10);
  assert.deepEqual(line.values, [0, 1, 2, 3, 4, null, 5, 6, 7]);
  assert.equal(line.times.length, line.values.length);
  assert.deepEqual(lines.silences(line), [[40, 200]]);
  // Older points stand further apart: no gap between them, none where they end.
  const older = [...Array.from({ length: 12 }, (_, i) => i * 300), ...Array.from({ length: 30 }, (_, i) => 3310 + i * 10)];
  assert.ok(!lines.lineOf(older, older, 10).values.includes(null));
  // A silence among the older ones is one all the same.
  assert.equal(lines.lineOf(older.filter(t => t < 900 || t > 1800), older, 10).values.filter(v => v === null).length, 1);
  // Buckets of which nothing is known.
  assert.deepEqual(lines.lineOf([0, 10, 20, 30, 40, 50, 60], [1, 2, 3, null, null, null, 4], 10).values, [1, 2, 3, null, 4]);
  // Every other bucket is empty, as scrapes are that far apart.
  assert.deepEqual(lines.lineOf([0, 10, 20, 30, 40, 50], [1, null, 2, null, 3, null], 10).values, [1, 2, 3]);
  assert.deepEqual(lines.lineOf([0, 1], [null, null], 1), { times: [], values: [] });
  assert.deepEqual(lines.lineOf([5], [7], 1), { times: [5], values: [7] });
});

test('lines of other times share an axis, and gaps stay where they are', () => {
  const a = { times: [0, 10, 15, 20], values: [1, 2, null, 3] }, b = { times: [5, 20], values: [7, 8] };
  assert.deepEqual(lines.aligned([a, b]), {
    times: [0, 5, 10, 15, 20], columns: [[1, undefined, 2, null, 3], [undefined, 7, undefined, undefined, 8]],
  });
});

test('targets: those with trouble first', () => {
  const target = (instance, more) => ({
    job: 'j', url: `http://${instance}/`, labels: { job: 'j', instance }, health: 'up', error: '', last_ms: NOW - 1000, duration_ms: 10,
    interval_ms: 10000, samples: 1, bytes: 1, scrapes: 100, failures: 0, restarts: 0, ...more,
  });
  const list = [target('well'), target('waits', { health: 'unknown', last_ms: null }), target('late', { last_ms: NOW - 60000 }),
    target('slow', { duration_ms: 9000 }), target('down-often', { health: 'down', failures: 90 }), target('down', { health: 'down', failures: 1 }),
    target('also-well')];
  assert.deepEqual(health.byTrouble(list, NOW).map(({ labels }) => labels.instance),
    ['down-often', 'down', 'late', 'slow', 'waits', 'also-well', 'well']);
});

test('what went wrong is a sentence, and says whether to ask again', () => {
  const said = (status, text, after = null) => ask.troubleOf(status, text, after);
  assert.deepEqual([said(429, '{"error":"64 queries wait"}', '7').kind, said(429, '', '7').again, said(429, '', null).again > 0], ['busy', 7000, true]);
  assert.match(said(429, '{"error":"64 queries wait"}', '7').message, /asked again in 7 s\. 64 queries wait\./);
  assert.equal(said(408, '').kind, 'slow');
  assert.match(said(408, '{"error":"over 30 s"}').message, /shorter range or fewer targets\. Over 30 s\./);
  assert.equal(said(404, '{"error":"no profile there"}').message, 'No profile there.');
  assert.equal(said(500, 'plain\n').message, 'The recorder answered with 500: Plain.');
  assert.ok(said(500, 'x'.repeat(1e6)).message.length < 600);
  assert.ok(!said(500, '{"error":"a\u202eb"}').message.includes('\u202e'));
  assert.equal(ask.troubleFrom(new RangeError('no')).kind, 'other');
});

const later = (ms, run) => new Promise(done => setTimeout(() => done(run()), ms));

test('an older answer never replaces a newer one, and is given up', async () => {
  const question = new Question(), aborted = [];
  const slow = signal => { signal.addEventListener('abort', () => aborted.push('slow')); return later(400, () => 'slow'); };
  question.ask('a', slow);
  await later(200, () => {});
  question.ask('b', () => later(10, () => 'quick'));
  assert.deepEqual(aborted, ['slow']);
  assert.equal(question.pending.value, true);
  await later(700, () => {});
  assert.deepEqual([question.answer.value, question.pending.value], ['quick', false]);
});

test('what is asked twice is asked once; what is moved quickly is asked where it rests', async () => {
  const question = new Question();
  let asked = 0;
  const count = async () => ++asked;
  for (let i = 0; i < 50; i++)
    question.ask(`key ${i}`, count);
  question.ask('key 49', count);
  await later(400, () => {});
  question.ask('key 49', count);
  await later(300, () => {});
  assert.deepEqual([asked, question.answer.value], [1, 1]);
});

test('trouble leaves what is shown, and is asked again by itself where that is of use', async () => {
  const question = new Question();
  let broken = true;
  question.ask('a', async () => 'first');
  await later(250, () => {});
  question.ask('b', async () => {
    if (broken)
      throw new ask.Trouble('gone', 'nobody there', 200);
    return 'second';
  });
  await later(250, () => {});
  assert.deepEqual([question.answer.value, question.trouble.value?.kind], ['first', 'gone']);
  broken = false;
  await later(400, () => {});
  assert.deepEqual([question.answer.value, question.trouble.value], ['second', null]);
});

test('questions have the parameters that docs/openapi.yaml names', () => {
  const matchers = [{ name: 'job', operator: '=', value: 'a"b&c' }], span = { from: 1e12 + 0.4, to: 2e12 };
  const of = (address) => new URL(address, 'http://x/');
  const range = of(api.blockAddress({ matchers, span, moment: null, mode: 'max', against: { from: 5e11, to: 6e11 }, whole: true }));
  assert.equal(range.pathname, '/api/v1/page');
  assert.deepEqual(Object.fromEntries(range.searchParams), {
    match: '{job="a\\"b&c"}', from: '1000000000000', to: '2000000000000', mode: 'max', base_from: '500000000000', base_to: '600000000000', all: '1',
  });
  const ranking = processes => Object.fromEntries(of(api.leaksAddress({
    matchers: [], span, metric: 'inuse_space', by: 'stack', sort: 'flat', focus: 'a b', ignore: '', every: false, processes,
  })).searchParams);
  assert.deepEqual(ranking(1), { from: '1000000000000', to: '2000000000000', by: 'stack', focus: 'a b', moments: '24', n: '200' });
  assert.deepEqual([0, 40, 80, 1000].map(n => ranking(n).moments), ['24', '24', '12', '6']);
  const moment = of(api.blockAddress({ matchers: [], span, moment: 1.5e12, mode: 'last', against: null, whole: false }));
  assert.deepEqual(Object.fromEntries(moment.searchParams), { at: '1500000000000' });
});

// --- the address ---

const anyRange = any => any.chance(50) ? times.rangeText(times.last((1 + any.below(48)) * HOUR))
  : times.rangeText(times.fixed({ from: NOW - 1e8 - any.below(1e8), to: NOW - any.below(1e8) }));

test('all of it goes through the address', () => {
  s.recorder.value = true;
  s.settingsStart(null);
  const any = new Random(3);
  const shown = () => JSON.stringify([s.tab.value, s.metric.value, s.focus.value, r.selector.value, r.mode.value, r.each.value, r.asTable.value,
    ...Object.values(r.timeTexts).map(text => text.value), [...r.off.value], r.matchers.value, r.range.value, r.against.value, r.moment.value]);
  for (let i = 0; i < 300; i++) {
    s.tab.value = any.of(s.tabs());
    s.metric.value = any.of(['inuse_space', 'alloc_objects']);
    s.focus.value = any.of(['', 'a&b=c#d', 'é+ %']);
    r.select(Array.from({ length: any.below(3) }, (_, k) => ({ name: `n${k} "`, operator: any.of(selector.OPERATORS), value: any.of(['a&b', '<', '"', '']) })));
    r.timeTexts.window.value = anyRange(any);
    r.timeTexts.range.value = any.chance(50) ? '' : anyRange(any);
    r.timeTexts.against.value = any.chance(50) ? '' : anyRange(any);
    r.timeTexts.moment.value = any.chance(50) ? '' : String(NOW - any.below(1e9));
    r.mode.value = any.of(r.MODES);
    r.each.value = any.chance(50);
    if (any.chance(50))
      r.toggleLine(any.of(['rss', 'profile', 'jemalloc_resident']));
    const before = shown(), link = s.linkTo();
    location.hash = '';
    listeners.popstate();
    assert.equal(s.linkTo(), 'http://127.0.0.1:1/#');
    location.hash = link.slice(link.indexOf('#'));
    listeners.popstate();
    assert.equal(shown(), before);
    assert.equal(s.linkTo(), link);
  }
});

test('what an address says wrongly is not there', () => {
  location.hash = '#view=nothing&select=a&window=now..now-1h&range=x&against=1..0&time=yesterday&mode=sum&off=<b>&each=yes';
  listeners.popstate();
  assert.equal(s.linkTo(), 'http://127.0.0.1:1/#');
  assert.deepEqual([s.tab.value, r.matchers.value, r.range.value, r.mode.value], ['growth', [], null, 'last']);
  assert.deepEqual(r.shownWindow.value, times.last(6 * HOUR));
});

test('a page without a recorder knows no targets', () => {
  s.recorder.value = false;
  location.hash = '#view=targets';
  listeners.popstate();
  assert.notEqual(s.tab.value, 'targets');
});
