// What is looked at, for other programs and for people: always with the filters, the snapshot and the base of the view.
import { FlameGraph } from '../flame';
import { callgrind, csv, folded, markdown, pprof, speedscope } from '../model';
import { theFlame } from '../selection';
import * as s from '../settings';
import { exportOpen, theData, view } from '../state';
import { viewCommand } from './command';
import { copy, download } from './copy';
import { flameInput } from './flame';
import { Menu, type MenuItem } from './menu';
import { fileName } from './name';
import { flameTip } from './tip';
import { dark } from './theme';

const MARKDOWN_ROWS = 40;
const SVG_SIZE = { width: '1200px', height: '800px' };

function name(extension: string): string {
  const { title, program } = theData();
  const base = fileName(program ?? '') || title || 'heap';
  return `${base.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 60)}${view.value.diff ? '.diff' : ''}.${extension}`;
}

// The picture as it stands, or where none is shown a whole one.
async function svg(): Promise<string> {
  if (theFlame.current)
    return theFlame.current.svg();
  const host = document.createElement('div');
  Object.assign(host.style, SVG_SIZE, { position: 'fixed', left: '-9999px', top: '0' });
  document.body.append(host);
  const input = flameInput();
  const graph = new FlameGraph(host, {
    select: () => {},
    zoom: () => {},
    rest: () => {},
    tooltip: node => flameTip(input, node),
  });
  graph.theme(dark.value);
  graph.show(input);
  // It takes its size in a frame of its own.
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const made = graph.svg();
  graph.destroy();
  host.remove();
  return made;
}

function markdownText(): string {
  return markdown(view.value, s.sort.value.startsWith('cum') ? 'cum' : 'flat', MARKDOWN_ROWS, viewCommand());
}

export function ExportMenu() {
  const text = 'text/plain';
  const items: MenuItem[] = [
    {
      title: 'pprof',
      note: 'google/pprof, Grafana, Parca …',
      test: 'export-pprof',
      run: () => {
        void pprof(view.value).then(bytes =>
          download(bytes as Uint8Array<ArrayBuffer>, name('pb.gz'), 'application/gzip')
        );
      },
    },
    {
      title: 'Folded stacks',
      note: 'flamegraph.pl, inferno',
      test: 'export-folded',
      run: () => download(folded(view.value), name('folded'), text),
    },
    {
      title: 'SVG',
      note: 'the flame graph, for a ticket',
      test: 'export-svg',
      run: () => {
        void svg().then(picture => download(picture, name('svg'), 'image/svg+xml'));
      },
    },
    {
      title: 'speedscope',
      note: 'speedscope.app',
      test: 'export-speedscope',
      run: () => download(speedscope(view.value, name('speedscope')), name('speedscope.json'), 'application/json'),
    },
    {
      title: 'callgrind',
      note: 'KCachegrind',
      test: 'export-callgrind',
      run: () => download(callgrind(view.value, viewCommand()), name('callgrind'), text),
    },
    {
      title: 'CSV',
      note: 'one line for each stack',
      test: 'export-csv',
      run: () => download(csv(view.value), name('csv'), 'text/csv'),
    },
    {
      title: 'Markdown',
      note: 'the table, as a file',
      test: 'export-markdown',
      run: () => download(markdownText(), name('md'), 'text/markdown'),
    },
    {
      title: 'Copy Markdown',
      note: 'the table',
      test: 'copy-markdown',
      run: () => {
        void copy(markdownText(), 'the table as Markdown');
      },
    },
    {
      title: 'Copy command line',
      note: 'for this view',
      test: 'copy-command',
      run: () => {
        void copy(viewCommand(), 'the command line');
      },
    },
    {
      title: 'Copy link',
      note: 'to this view',
      test: 'copy-link',
      run: () => {
        void copy(s.linkTo(), 'the link');
      },
    },
  ];
  return <Menu title="Export" test="export" open={exportOpen} items={items} />;
}
