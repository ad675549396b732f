import type { PageData, ViewOptions } from '../types';
export function commandLine(data: PageData, _o: ViewOptions) { return data.command.join(' '); }
