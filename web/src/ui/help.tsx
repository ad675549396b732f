// The keyboard, and what the marks mean.
import { useEffect, useRef } from 'preact/hooks';
import { recorder } from '../settings';
import { helpOpen } from '../state';

const KEYS: [string, string][] = [
  ['1 … 7', 'growth, flame graph, sandwich, table, traces, source, about'],
  ['/', 'search'],
  ['n  N', 'next, previous match'],
  ['i', 'invert: begin with what allocates'],
  ['d', 'difference on and off'],
  ['m', 'next metric'],
  ['r', 'collapse recursion'],
  ['t', 'theme'],
  ['c', 'copy the selected stack'],
  ['e', 'export'],
  ['Backspace', 'zoom out one step'],
  ['0', 'whole picture'],
  ['← ↑ → ↓', 'walk through the picture or the list'],
  ['Enter', 'zoom, or open the row'],
  ['Esc', 'close, leave a field, zoom out, let go of the selection'],
  ['?', 'this list'],
];

const RECORDER_KEYS: [string, string][] = [
  ['8', 'targets'],
  ['[  ]', 'timeline: earlier, later'],
  ['z  Z', 'timeline: shorter, longer window'],
  ['d', 'compare with the time before, and no more'],
  ['← →', 'on an end of a range: by a hundredth of the window; Page up and down: a tenth'],
  ['Shift + drag', 'on the timeline: the range to compare with'],
];

function keys(): [string, string][] {
  return recorder.value ? [...KEYS.filter(([key]) => key !== 'd'), ...RECORDER_KEYS] : KEYS;
}

export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (helpOpen.value && !box.current!.open)
      box.current!.showModal();
  }, [helpOpen.value]);
  if (!helpOpen.value)
    return null;
  const close = () => {
    helpOpen.value = false;
  };
  return (
    <dialog
      ref={box}
      class="help"
      aria-labelledby="help-title"
      data-test="help-dialog"
      onClose={close}
      onClick={event => {
        if (event.target === box.current)
          close();
      }}>
      <h2 id="help-title">Keyboard</h2>
      <dl>
        {keys().map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <h2>Words</h2>
      <p>
        <b>Flat</b> is what a function allocated itself, <b>cum</b> what it and all it called did. <b>±</b> is the 95 %
        interval: the profile is a sample. <b>Noise</b> is a change that sampling alone explains; it is grey.{' '}
        <b>(other)</b> is what was too small to be part of this page.
      </p>
      <p>
        <button type="button" data-test="help-close" onClick={close}>
          Close
        </button>
      </p>
    </dialog>
  );
}
