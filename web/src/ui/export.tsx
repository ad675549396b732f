// What is looked at, for other programs and for people.
import { theFlame } from '../selection';
import { exportOpen } from '../state';
import { download } from './copy';
import { Menu, type MenuItem } from './menu';

export function ExportMenu() {
  const items: MenuItem[] = [];
  const flame = theFlame.current;
  if (flame)
    items.push({ title: 'SVG', note: 'the flame graph as it is', test: 'export-svg', run: () => download(flame.svg(), 'heap.svg', 'image/svg+xml') });
  return <Menu title="Export" test="export" open={exportOpen} items={items} />;
}
