import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// Only a process has its own standard output.
test('the command says in one line that its output cannot be written', () => {
  const program = join(import.meta.dirname, '../src/cli.ts');
  const stdio = ['ignore', openSync('/dev/full', 'w'), 'pipe'] as const;
  const { status, stderr } = spawnSync(process.execPath, [program, '--help'], { stdio: [...stdio], encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, 'ENOSPC: no space left on device, write\n']);
});
