// Where the page begins.
import { render } from 'preact';
import { loadStart } from './load';
import { stateStart } from './recorder/state';
import { recorder, settingsStart } from './settings';
import { theData } from './state';
import { App } from './ui/app';
import { keysStart } from './ui/keys';
import { themeStart } from './ui/theme';

// The data stand behind this script, so that a file that was cut off can still say so.
addEventListener('DOMContentLoaded', () => {
  themeStart();
  recorder.value = document.querySelector('meta[name="heapgauge-recorder"]') !== null;
  if (recorder.value) {
    settingsStart(null);
    stateStart();
    keysStart();
  }
  render(<App />, document.getElementById('app')!);
  if (recorder.value)
    return;
  void loadStart(() => {
    settingsStart(theData());
    keysStart();
  });
});
