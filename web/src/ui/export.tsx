import { exportOpen } from '../state';
import { Menu } from './menu';
export function ExportMenu() { return <Menu title="Export" test="export" open={exportOpen} items={[]} />; }
