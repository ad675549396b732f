// The command line that shows what the view shows.
import { commandLine } from '../model';
import * as s from '../settings';
import { options, theData } from '../state';

export function viewCommand(): string {
  const data = theData();
  const o = options.value;
  const last = data.snapshots.length - 1;
  switch (s.tab.value) {
    case 'growth':
      return last > 0
        ? commandLine(data, { ...o, base: 0, at: last }, 'top', s.rankOf.value === 'cum' ? ['--sort', 'cum'] : [])
        : commandLine(data, o);
    case 'flame':
      return commandLine(data, o, 'flame', [...(s.inverted.value ? ['--invert'] : []), '-o', 'heap.html']);
    case 'traces':
      return commandLine(data, o, 'traces');
    default:
      return commandLine(data, o, 'top', s.sort.value.startsWith('cum') ? ['--sort', 'cum'] : []);
  }
}
