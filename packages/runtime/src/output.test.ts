import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startList } from './output.ts';

test('a text of a list cannot print lines of its own or change what the terminal shows', () => {
  const lines: string[] = [];
  const { printRow } = startList({ PAYER: 8, STATE: 0 }, undefined, (line) => lines.push(line));
  printRow({}, 'A\nB\u001B[2K\u009BC', 'LISTED');
  expect(lines).toEqual(['PAYER     STATE', 'A\uFFFDB\uFFFD[2K\uFFFDC  LISTED']);
});

/** Waits for its input, and then prints two lines, closes what it uses, and says so. */
const program = `
  import { print } from './output.ts';
  for await (const _ of process.stdin);
  print('first');
  await new Promise(setImmediate);
  print('second');
  await new Promise(setImmediate);
  process.stderr.write('closed\\n');`;

test.each([
  [
    'a full disk',
    () => openSync('/dev/full', 'w'),
    1,
    'The output could not be written: ENOSPC: no space left on device, write\n',
  ],
  ['a pipe whose reader has ended', () => 'pipe' as const, 0, ''],
])('a program whose output is %s closes what it uses', async (_, open, code, message) => {
  const args = ['--input-type=module', '--eval', program];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['pipe', open(), 'pipe'] });
  child.stdout?.destroy();
  child.stdin?.end();
  const [stderr, [exitCode]] = await Promise.all([
    text(child.stderr as NonNullable<typeof child.stderr>),
    once(child, 'exit'),
  ]);
  expect([exitCode, stderr]).toEqual([code, `${message}closed\n`]);
});
