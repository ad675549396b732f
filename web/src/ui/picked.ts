// Which row of a list of stacks was picked. The selection itself is a place in a tree, and several rows can have it: stacks
// of different threads, or recursion that is collapsed there.
import { useState } from 'preact/hooks';
import { stack } from '../settings';

export interface Picked {
  row: number; // -1: the selection came from elsewhere
  pick(row: number, choose: () => void): void;
}

export function usePicked(list: object): Picked {
  const [last, setLast] = useState({ list, row: -1, stack: '' });
  const valid = last.list === list && last.stack !== '' && last.stack === stack.value;
  return {
    row: valid ? last.row : -1,
    pick: (row, choose) => {
      choose();
      setLast({ list, row, stack: stack.peek() });
    },
  };
}
