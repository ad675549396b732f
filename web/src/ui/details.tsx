// What is known of the selected function, and what can be done with it.
import { useMemo } from 'preact/hooks';
import { batch } from '@preact/signals';
import { quoteExpression } from '../model';
import * as s from '../settings';
import { copySelected, linesOf, pickEntry, sandwichOf, selectedEntry, selectedStack } from '../selection';
import { totalsCum, totalsFlat, view } from '../state';
import { NONE, type Amounts, type Tree, type View } from '../types';
import { viewCommand } from './command';
import { copy } from './copy';
import { Legend } from './legend';
import { fullName, Name } from './name';
import { amountText, changeText, entryPlace, errorAt, percentText, relativeText } from './numbers';
import { neighbours } from './sandwich';
import { Status, statusOf } from './table';

const SHOWN = 5;

function AmountRows({
  v,
  amounts,
  i,
  title,
  significant,
}: {
  v: View;
  amounts: Amounts;
  i: number;
  title: string;
  significant: Uint8Array | null;
}) {
  const now = amounts.now[i];
  if (!v.diff)
    return (
      <div>
        <dt>{title}</dt>
        <dd data-test={`details-${title.toLowerCase()}`}>
          <b>{amountText(v, now)}</b>{' '}
          <span class="dim">
            {errorAt(v, amounts, i)} {percentText(now, v.totalAll.now)}
          </span>
        </dd>
      </div>
    );
  const before = amounts.base[i] ?? 0;
  return (
    <div>
      <dt>{title}</dt>
      <dd data-test={`details-${title.toLowerCase()}`}>
        <b>{changeText(v, now - before)}</b>{' '}
        <span class="dim">
          {errorAt(v, amounts, i)} {relativeText(now, before)}
        </span>{' '}
        <Status status={statusOf(amounts, i, significant)} />
        <br />
        <span class="dim">
          {amountText(v, before)} → {amountText(v, now)}
        </span>
      </dd>
    </div>
  );
}

function Neighbours({ v, tree, title }: { v: View; tree: Tree; title: string }) {
  const list = useMemo(() => neighbours(tree), [tree]);
  if (list.length === 0)
    return null;
  return (
    <section>
      <h2 class="part">{title}</h2>
      <ul class="neighbours">
        {list.slice(0, SHOWN).map(({ entry, node }) => {
          const now = tree.total.now[node];
          const amount = v.diff ? changeText(v, now - (tree.total.base[node] ?? 0)) : amountText(v, now);
          return (
            <li key={node}>
              <span class="number">{amount}</span>
              {entry === NONE ? (
                <span class="dim">(other)</span>
              ) : (
                <button type="button" class="link" onClick={() => pickEntry(entry)}>
                  <Name name={v.entries.name[entry]} />
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {list.length > SHOWN && <p class="dim">and {(list.length - SHOWN).toLocaleString('en')} more</p>}
    </section>
  );
}

function Places({ v, entry }: { v: View; entry: number }) {
  const place = entryPlace(v, entry) || linePlace(v);
  const binary = v.entries.binary[entry];
  return (
    <>
      {place && (
        <div>
          <dt>Source</dt>
          <dd class="mono" data-test="details-place">
            {fullName(place)}
          </dd>
        </div>
      )}
      {binary && (
        <div>
          <dt>Binary</dt>
          <dd class="mono" data-test="details-binary">
            {fullName(binary)}
          </dd>
        </div>
      )}
      {v.entries.inlined[entry] === 1 && (
        <div>
          <dt>Inlined</dt>
          <dd>everywhere it appears</dd>
        </div>
      )}
      {v.entries.unnamed[entry] === 1 && (
        <div>
          <dt>Name</dt>
          <dd>unknown: no symbols for this address</dd>
        </div>
      )}
    </>
  );
}

// By function an entry has no line of its own: the heaviest of its lines says where it is.
function linePlace(v: View): string {
  if (v.options.by !== 'function')
    return '';
  const list = linesOf.value;
  let best = -1;
  for (let i = 0; list && i < list.n; i++)
    if (list.file[i] !== 0 && (best < 0 || list.cum.now[i] > list.cum.now[best]))
      best = i;
  return !list || best < 0
    ? ''
    : `${v.data.strings[list.file[best]]}${list.line[best] > 0 ? `:${list.line[best]}` : ''}`;
}

function Actions({ name }: { name: string }) {
  const expression = `^${quoteExpression(name)}$`; // it and nothing longer
  const act = (test: string, title: string, help: string, run: () => void) => (
    <button type="button" data-test={`act-${test}`} title={help} onClick={() => batch(run)}>
      {title}
    </button>
  );
  return (
    <div class="actions">
      {act('focus', 'Focus', 'Only stacks with it', () => {
        s.focus.value = expression;
      })}
      {act('ignore', 'Ignore', 'Without the stacks that have it', () => {
        s.ignore.value = expression;
      })}
      {act('hide', 'Hide', 'Leave it out of the stacks', () => {
        s.hide.value = expression;
      })}
      {act('show-from', 'Show from', 'Stacks begin at it', () => {
        s.showFrom.value = expression;
      })}
      {act('sandwich', 'Sandwich', 'Its callers and callees', () => {
        s.tab.value = 'sandwich';
      })}
      {act('lines', 'Source', 'Its lines', () => {
        s.tab.value = 'lines';
      })}
      {act('copy-name', 'Copy name', 'The whole name', () => {
        void copy(name, 'the name');
      })}
      {act('copy-stack', 'Copy stack', 'The frames down to it (c)', copySelected)}
      {act('copy-command', 'Copy command', 'The command line that shows this view', () => {
        void copy(viewCommand(), 'the command line');
      })}
      {act('copy-link', 'Copy link', 'The address of this view', () => {
        void copy(s.linkTo(), 'the link');
      })}
    </div>
  );
}

function Selected({ entry }: { entry: number }) {
  const v = view.value;
  const name = v.entries.name[entry];
  const pair = sandwichOf.value;
  const stack = selectedStack.value;
  return (
    <>
      <h2 class="mono" data-test="details-name">
        {fullName(name)}
      </h2>
      <dl>
        <AmountRows
          v={v}
          amounts={totalsFlat.value.flat}
          i={entry}
          title="Flat"
          significant={totalsFlat.value.significant}
        />
        <AmountRows
          v={v}
          amounts={totalsFlat.value.cum}
          i={entry}
          title="Cum"
          significant={totalsCum.value.significant}
        />
        {stack && (
          <div>
            <dt>Here</dt>
            <dd>
              {v.diff ? changeText(v, stack.now - stack.base) : amountText(v, stack.now)}
              <span class="dim"> in this context, {stack.frames.length} frames deep</span>
            </dd>
          </div>
        )}
        <Places v={v} entry={entry} />
      </dl>
      <Actions name={name} />
      {pair && (
        <>
          <Neighbours v={v} tree={pair.callers} title="Callers" />
          <Neighbours v={v} tree={pair.callees} title="Callees" />
        </>
      )}
    </>
  );
}

export function Details() {
  const entry = selectedEntry.value;
  if (!s.details.value)
    return (
      <button
        type="button"
        class="details-open"
        data-test="details-open"
        onClick={() => {
          s.details.value = true;
        }}>
        Details
      </button>
    );
  return (
    <aside class="details" aria-label="Selection" data-test="details">
      <div class="scroll" tabIndex={0} role="region" aria-label="Details">
        <button
          type="button"
          class="close"
          aria-label="Close the details"
          data-test="details-close"
          onClick={() => {
            s.details.value = false;
          }}>
          ✕
        </button>
        {entry === NONE ? (
          <p class="empty">Select something in a view: what is known of it stands here.</p>
        ) : (
          <Selected entry={entry} />
        )}
        {(s.tab.value === 'flame' || s.tab.value === 'sandwich') && <Legend />}
      </div>
    </aside>
  );
}
