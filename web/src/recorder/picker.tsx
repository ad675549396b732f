// Which series: conditions on labels as chips, and a field that finds names and values while one types. What is typed
// as Prometheus writes it (instance=~"web.*") is a condition, too.
import { useRef, useState } from 'preact/hooks';
import { visible } from '../model';
import { cutMiddle } from '../ui/name';
import { choicesOf, matcherText, matchesAll, parseTyped, withValue, type Choice } from './selector';
import * as r from './settings';
import { chosen, series } from './state';

const SHOWN = 200;

export function labelText(text: string, most = 80): string {
  return visible(cutMiddle(text, most));
}

function Chips() {
  const matchers = r.matchers.value;
  return (
    <ul class="chips" aria-label="Conditions">
      {matchers.map((matcher, i) => {
        const text = labelText(matcherText(matcher));
        return (
          <li key={matcherText(matcher)}>
            <span class="mono" data-test="chip">
              {text}
            </span>
            <button
              type="button"
              aria-label={`Without ${text}`}
              data-test={`unselect-${i}`}
              onClick={() => r.select(matchers.filter((_, k) => k !== i))}>
              ✕
            </button>
          </li>
        );
      })}
    </ul>
  );
}

// Values that go with the other conditions; those of a label that has one already are added to it.
function useChoices(typed: string): Choice[] {
  const matchers = r.matchers.value;
  const list = (series.answer.value ?? []).filter(({ labels }) => {
    const missed = matchers.filter(matcher => !matchesAll(labels, [matcher]));
    return missed.length === 0 || missed.every(({ name }) => name === missed[0].name);
  });
  return choicesOf(list, typed, SHOWN).filter(
    ({ name, value }) => !matchers.some(one => one.name === name && matchesAll({ [name]: value }, [one]))
  );
}

export function Picker() {
  const [typed, setTyped] = useState('');
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const [wrong, setWrong] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const choices = useChoices(open ? typed : '');
  const { processes, targets } = chosen.value;
  const at = Math.min(active, choices.length - 1);

  const begin = (text: string) => {
    setTyped(text);
    setActive(-1);
    setWrong(false);
    setOpen(true);
  };
  const finish = () => {
    begin('');
    setOpen(false);
  };
  const take = ({ name, value }: Choice) => {
    r.select(withValue(r.matchers.value, name, value));
    finish();
  };
  const walk = (to: number) => {
    setOpen(true);
    setActive(to);
    list.current?.children[to]?.scrollIntoView({ block: 'nearest' });
  };
  const enter = () => {
    const written = /[=~]/.test(typed) ? parseTyped(typed) : undefined;
    if (at >= 0)
      take(choices[at]);
    else if (written && written.length > 0) {
      r.select([...r.matchers.value, ...written]);
      finish();
    } else if (choices.length === 1 && typed !== '')
      take(choices[0]);
    else
      setWrong(typed !== '');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const n = choices.length;
    if (event.key === 'ArrowDown' && n > 0)
      walk((at + 1) % n);
    else if (event.key === 'ArrowUp' && n > 0)
      walk(at <= 0 ? n - 1 : at - 1);
    else if (event.key === 'Enter')
      enter();
    else if (event.key === 'Escape' && (open || typed !== ''))
      finish();
    else if (event.key === 'Backspace' && typed === '' && r.matchers.value.length > 0)
      r.select(r.matchers.value.slice(0, -1));
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="picker"
      onFocusOut={event => {
        if (!(event.currentTarget as HTMLElement).contains(event.relatedTarget as Node | null))
          setOpen(false);
      }}>
      <Chips />
      <div class="choose">
        <input
          type="text"
          role="combobox"
          aria-label="Targets by labels"
          aria-expanded={open && choices.length > 0}
          aria-controls="choices"
          aria-autocomplete="list"
          aria-activedescendant={open && at >= 0 ? `choice-${at}` : undefined}
          aria-invalid={wrong}
          aria-describedby={wrong ? 'choices-wrong' : undefined}
          placeholder={r.matchers.value.length ? 'and …' : 'all targets: job, instance, …'}
          autocomplete="off"
          spellcheck={false}
          data-test="select"
          value={typed}
          onFocus={() => setOpen(true)}
          onClick={() => setOpen(true)}
          onInput={event => begin(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {wrong && (
          <span class="wrong" id="choices-wrong" role="alert" data-test="select-wrong">
            Nothing is called so in this window. A condition of one’s own is written name=value, name!=value or
            name=~expression.
          </span>
        )}
        <ul
          role="listbox"
          id="choices"
          class="popup choices"
          aria-label="Labels"
          hidden={!open || choices.length === 0}
          ref={list}>
          {open &&
            choices.map((choice, i) => (
              <li
                key={JSON.stringify([choice.name, choice.value])}
                role="option"
                id={`choice-${i}`}
                aria-selected={i === at}
                data-test="choice"
                onPointerDown={event => event.preventDefault()}
                onClick={() => take(choice)}>
                <span class="dim">{labelText(choice.name, 40)}</span> {labelText(choice.value, 100)}
                <span class="count dim">{choice.series.toLocaleString('en')}</span>
              </li>
            ))}
        </ul>
      </div>
      <span class="dim chosen" data-test="chosen">
        {series.answer.value === null
          ? '…'
          : `${targets.toLocaleString('en')} target${targets === 1 ? '' : 's'}${
              processes > targets ? `, ${processes.toLocaleString('en')} processes` : ''
            }`}
      </span>
    </div>
  );
}
