// The one filter bar: what every view shows is what it lets through.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import { visible } from '../model';
import * as s from '../settings';
import { searchNext } from '../selection';
import { filterError, found, searchError, theData } from '../state';
import { cutMiddle, fileName } from './name';

const TYPING_MS = 250;

interface FieldProps {
  label: string;
  test: string;
  value: Signal<string>;
  help: string;
  error: string | null;
  short?: string;
  width?: string;
}

export function Field({ label, test, value, help, error, short }: FieldProps) {
  const [typed, setTyped] = useState(value.value);
  const timer = useRef(0);
  const applied = useRef(value.value);
  // Changed from elsewhere: a link, the back button, “focus on this”. What was applied here may have been typed on since.
  useEffect(() => {
    if (value.value === applied.current)
      return;
    clearTimeout(timer.current);
    applied.current = value.value;
    setTyped(value.value);
  }, [value.value]);
  const apply = (text: string) => {
    clearTimeout(timer.current);
    applied.current = text;
    value.value = text;
  };
  const id = `field-${test}`;
  return (
    <div class={`field ${value.value ? 'set' : ''}`}>
      <label for={id} title={help}>
        {label}
      </label>
      <input
        id={id}
        data-test={test}
        type="search"
        spellcheck={false}
        autocomplete="off"
        placeholder={short ?? ''}
        value={typed}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : `${id}-error`}
        onInput={event => {
          const text = event.currentTarget.value;
          setTyped(text);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => apply(text), TYPING_MS);
        }}
        onKeyDown={event => {
          if (event.key === 'Enter')
            apply(event.currentTarget.value);
          if (event.key === 'Escape') {
            // Leaves the field; on its own a browser would empty it.
            event.preventDefault();
            event.currentTarget.blur();
          }
        }}
        onBlur={event => apply(event.currentTarget.value)}
      />
      {error !== null && (
        <span class="wrong" id={`${id}-error`} role="alert">
          {visible(cutMiddle(error, 200))}
        </span>
      )}
    </div>
  );
}

function SearchField() {
  const n = found.value?.length ?? 0;
  return (
    <div class="searching" role="search">
      <Field
        label="Search"
        test="search"
        value={s.search}
        error={searchError.value}
        short="regexp  ( / )"
        help="Marks what matches; n and N go to the next and the previous"
      />
      {s.search.value !== '' && searchError.value === null && (
        <span class="found" data-test="found" role="status">
          {n === 0 ? 'nothing' : `${n.toLocaleString('en')} found`}
        </span>
      )}
      {n > 0 && (
        <>
          <button
            type="button"
            class="small"
            title="Previous (N)"
            aria-label="Previous match"
            onClick={() => searchNext(-1)}>
            ‹
          </button>
          <button type="button" class="small" title="Next (n)" aria-label="Next match" onClick={() => searchNext(1)}>
            ›
          </button>
        </>
      )}
    </div>
  );
}

function BinarySelect() {
  const { mappings, strings } = theData();
  const files = [...new Set([...mappings.file].map(file => strings[file] ?? ''))].filter(file => file !== '').sort();
  if (files.length < 2 && s.binary.value === '')
    return null;
  return (
    <label class={`pick ${s.binary.value ? 'set' : ''}`}>
      Binary
      <select
        data-test="binary"
        value={s.binary.value}
        onChange={event => {
          s.binary.value = event.currentTarget.value;
        }}>
        <option value="">all</option>
        {files.map(file => (
          <option key={file} value={file}>
            {visible(cutMiddle(fileName(file) || file, 60))}
          </option>
        ))}
      </select>
    </label>
  );
}

function ThreadSelect() {
  const { labels, strings } = theData();
  const threads = [...new Set([...labels.thread].map(thread => strings[thread] ?? ''))].sort();
  if (threads.length < 2)
    return null;
  return (
    <label class={`pick ${s.thread.value === null ? '' : 'set'}`}>
      Thread
      <select
        data-test="thread"
        value={s.thread.value === null ? '*' : `=${s.thread.value}`}
        onChange={event => {
          const chosen = event.currentTarget.value;
          s.thread.value = chosen === '*' ? null : chosen.slice(1);
        }}>
        <option value="*">all</option>
        {threads.map(thread => (
          <option key={thread} value={`=${thread}`}>
            {thread === '' ? '(no name)' : visible(cutMiddle(thread, 60))}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Check({
  label,
  test,
  value,
  help,
}: {
  label: string;
  test: string;
  value: Signal<boolean>;
  help: string;
}) {
  return (
    <label class="check" title={help}>
      <input
        type="checkbox"
        data-test={test}
        checked={value.value}
        onChange={event => {
          value.value = event.currentTarget.checked;
        }}
      />
      {label}
    </label>
  );
}

/** Options of the command line by the same names. */
const EXPRESSIONS: readonly (readonly [option: string, label: string, value: Signal<string>, help: string])[] = [
  ['focus', 'Focus', s.focus, 'Only stacks with a frame that matches'],
  ['ignore', 'Ignore', s.ignore, 'Without stacks that have a matching frame'],
  ['hide', 'Hide', s.hide, 'Matching frames are left out of the stacks'],
  ['show', 'Show', s.show, 'Only matching frames are left in the stacks'],
  ['show-from', 'Show from', s.showFrom, 'Stacks begin at the outermost frame that matches'],
];

export function FilterBar() {
  const error = filterError.value;
  const of = (option: string) => (error?.option === `--${option}` ? error.message : null);
  const any = s.FILTERS.some(filter => filter.value !== '') || s.binary.value !== '' || s.thread.value !== null;
  return (
    <section class="filters" aria-label="Filters">
      <SearchField />
      {EXPRESSIONS.map(([option, label, value, help]) => (
        <Field key={option} label={label} test={option} value={value} error={of(option)} short="regexp" help={help} />
      ))}
      <BinarySelect />
      <ThreadSelect />
      <button type="button" data-test="clear" disabled={!any} onClick={s.clearFilters}>
        Clear all
      </button>
    </section>
  );
}

// What a frame is, and how it is called: beside the tabs.
export function FrameOptions() {
  return (
    <div class="frames">
      <label class="pick">
        By
        <select
          data-test="by"
          value={s.by.value}
          onChange={event => {
            s.by.value = s.GRANULARITIES.find(g => g === event.currentTarget.value) ?? 'function';
          }}>
          {s.GRANULARITIES.map(granularity => (
            <option key={granularity} value={granularity}>
              {granularity}
            </option>
          ))}
        </select>
      </label>
      <Check
        label="collapse recursion"
        test="collapse"
        value={s.collapse}
        help="A function that calls itself is one frame (r)"
      />
      <Check
        label="short names"
        test="trim"
        value={s.trim}
        help="Template arguments and parameters are left out of names"
      />
    </div>
  );
}
