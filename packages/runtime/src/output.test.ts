import { expect, test } from 'vitest';
import { startList } from './output.ts';

test('a text of a list cannot print lines of its own or change what the terminal shows', () => {
  const lines: string[] = [];
  const { printRow } = startList({ PAYER: 8, STATE: 0 }, undefined, (line) => lines.push(line));
  printRow({}, 'A\nB\u001B[2K\u009BC', 'LISTED');
  expect(lines).toEqual(['PAYER     STATE', 'A\uFFFDB\uFFFD[2K\uFFFDC  LISTED']);
});
