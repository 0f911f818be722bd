import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readOptions } from './options.ts';

test.for([
  ['--rounds must be a whole number from 1, and 0 is none', ['--rounds', '0']],
  ['--seconds must be a whole number from 1, and 0 is none', ['--seconds', '0']],
  ['--rows must be a whole number from 0, and x is none', ['growth', '--rows', '0,x']],
  ['there is no groth to run', ['groth']],
] as const)('%s: told in one line', ([told, args]) => {
  expect(() => readOptions(args)).toThrow(new Error(told));
});

test.for([
  ['bench.ts', 'Usage: pnpm bench [growth] [options]\n'],
  ['micro.ts', 'Usage: pnpm bench:micro, without arguments'],
] as const)('%s tells how it is called to whom asks for it, and does nothing else', ([program, usage]) => {
  const told = execFileSync(process.execPath, [join(import.meta.dirname, program), '--help'], { encoding: 'utf8' });
  expect(told).toContain(usage);
  expect(told).not.toContain('µs');
});

test('says in one line that nothing would send JSON, before anything is started', () => {
  const PATH = mkdtempSync(join(tmpdir(), 'no-wrk-'));
  onTestFinished(() => rmSync(PATH, { recursive: true }));
  symlinkSync('/bin/sh', join(PATH, 'sh'));
  const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, 'bench.ts'), '--no-peers'], {
    ...{ env: { PATH }, encoding: 'utf8' },
  });
  expect(stderr).toMatch(/^--no-peers needs wrk: .*\n$/);
  expect(status).toBe(1);
});
