// How the targets are doing, those with trouble first, and why.
import { signal } from '@preact/signals';
import { visible, bytesText, countText } from '../model';
import * as s from '../settings';
import { Grid, type Column } from '../ui/grid';
import { cutMiddle } from '../ui/name';
import { recorderNow } from './ask';
import type { Target } from './api';
import { byTrouble, isLate, troubleRank } from './health';
import { labelText } from './picker';
import { labelsKey, matcherText, selectorOf } from './selector';
import * as r from './settings';
import { targets } from './state';
import { agoText, momentText } from './times';

const COLUMNS: Column[] = [
  { key: 'state', title: 'State', width: 78 },
  { key: 'error', title: 'Last error', width: 380 },
  { key: 'last', title: 'Last scrape', width: 96, number: true },
  { key: 'took', title: 'Took', width: 78, number: true },
  { key: 'samples', title: 'Samples', width: 80, number: true },
  { key: 'bytes', title: 'Size', width: 84, number: true },
  { key: 'failures', title: 'Failed', width: 104, number: true, help: 'Of all scrapes' },
  { key: 'restarts', title: 'Restarts', width: 78, number: true },
  { key: 'labels', title: 'Labels' },
];

export const down = () => (targets.answer.value?.targets ?? []).filter(({ health }) => health === 'down').length;

const picked = signal(''); // its address and labels
const keyOf = ({ url, labels }: Target) => `${url} ${labelsKey(labels)}`;

function State({ of }: { of: Target }) {
  const rank = troubleRank(of, recorderNow());
  const [text, kind] =
    rank === 3 ? ['down', 'grown'] : rank === 2 ? [isLate(of, recorderNow()) ? 'late' : 'slow', 'plain'] : rank === 1 ? ['waiting', 'noise'] : ['up', 'shrunk'];
  return <span class={`badge ${kind}`}>{text}</span>;
}

function Labels({ of }: { of: Target }) {
  return (
    <span class="mono" title={Object.entries(of.labels).map(([name, value]) => labelText(`${name}=${value}`, 200)).join('\n')}>
      {labelText(selectorOf(of.labels).map(matcherText).join(', '), 200)}
    </span>
  );
}

function durationText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

function cellOf(of: Target, key: string) {
  const asked = of.scrapes > 0;
  switch (key) {
    case 'state':
      return <State of={of} />;
    case 'error':
      return <span title={visible(cutMiddle(of.error, 1000))}>{visible(cutMiddle(of.error, 200))}</span>;
    case 'last':
      return of.last_ms ? <span title={`${momentText(of.last_ms)} UTC`}>{agoText(recorderNow() - of.last_ms)}</span> : 'never';
    case 'took':
      return asked ? durationText(of.duration_ms) : '–';
    case 'samples':
      return asked ? countText(of.samples) : '–';
    case 'bytes':
      return asked ? bytesText(of.bytes) : '–';
    case 'failures':
      return asked ? `${countText(of.failures)} of ${countText(of.scrapes)}` : '–';
    case 'restarts':
      return countText(of.restarts);
    default:
      return <Labels of={of} />;
  }
}

function Picked({ of }: { of: Target }) {
  return (
    <section class="target" aria-label="The selected target" data-test="target">
      <p>
        <State of={of} /> <code>{visible(cutMiddle(of.url, 300))}</code>{' '}
        <span class="dim">
          job {labelText(of.job)}, every {durationText(of.interval_ms)}
        </span>{' '}
        <button
          type="button"
          data-test="target-select"
          onClick={() => {
            r.select(selectorOf(of.labels));
            s.tab.value = s.tab.begin;
          }}>
          Show its memory
        </button>
      </p>
      {of.error && <p data-test="target-error">{visible(cutMiddle(of.error, 2000))}</p>}
    </section>
  );
}

export function TargetsView() {
  const found = targets.answer.value;
  const trouble = targets.trouble.value;
  if (!found)
    return <p class="empty">{trouble ? trouble.message : 'Asking for the targets …'}</p>;
  const list = byTrouble(found.targets, recorderNow());
  const at = list.findIndex(target => keyOf(target) === picked.value);
  const counts = ['up', 'down', 'unknown'].map(health => found.targets.filter(target => target.health === health).length);
  return (
    <div class="page">
      <div class="switches">
        <span data-test="targets-said">
          {found.targets.length.toLocaleString('en')} target{found.targets.length === 1 ? '' : 's'}: {counts[0]} up,{' '}
          {counts[1]} down{counts[2] > 0 ? `, ${counts[2]} not asked yet` : ''}
          {found.dropped > 0 ? `; ${found.dropped.toLocaleString('en')} were dropped by relabelling` : ''}
        </span>
        {trouble && (
          <span class="trouble" role="status">
            {trouble.message}
          </span>
        )}
      </div>
      {at >= 0 && <Picked of={list[at]} />}
      <Grid
        label="Targets"
        test="targets"
        count={list.length}
        selected={at}
        columns={COLUMNS}
        cell={(row, key) => cellOf(list[row], key)}
        onSelect={row => {
          picked.value = keyOf(list[row]);
        }}
        onOpen={row => {
          r.select(selectorOf(list[row].labels));
          s.tab.value = s.tab.begin;
        }}
        empty="There are no targets: this recorder takes what is pushed to it."
      />
    </div>
  );
}
