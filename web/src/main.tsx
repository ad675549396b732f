// Where the page begins.
import { render } from 'preact';
import { loadStart } from './load';
import { settingsStart } from './settings';
import { theData } from './state';
import { App } from './ui/app';
import { keysStart } from './ui/keys';
import { themeStart } from './ui/theme';

// The data stand behind this script, so that a file that was cut off can still say so.
addEventListener('DOMContentLoaded', () => {
  themeStart();
  render(<App />, document.getElementById('app')!);
  void loadStart(() => {
    settingsStart(theData());
    keysStart();
  });
});
