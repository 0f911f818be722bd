import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test.for(['load', 'replay', 'audit-orders'])('%s tells its usage to who asks for it', async (command) => {
  const program = fileURLToPath(new URL(`${command}.ts`, import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, '--help']);
  expect(stdout).toContain(`\npnpm ${command} `);
  expect(stderr).toBe('');
});
