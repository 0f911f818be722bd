import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readOptions } from './options.ts';

test.for([
  ['--rounds must be a whole number from 1, and 0 is none', ['--rounds', '0']],
  ['--seconds must be a whole number from 1, and 0 is none', ['--seconds', '0']],
  ['--rows must be a whole number from 0, and x is none', ['growth', '--rows', '0,x']],
  ['there is no groth to run', ['groth']],
] as const)('%s: told in one line', ([told, args]) => {
  expect(() => readOptions(args)).toThrow(new Error(told));
});

test('tells how it is called to whom asks for it', () => {
  const told = execFileSync(process.execPath, [join(import.meta.dirname, 'bench.ts'), '--help'], { encoding: 'utf8' });
  expect(told).toContain('Usage: pnpm bench [growth] [options]');
});
