import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from './test-resources.ts';

/** Stands in for pnpm, with which turbo runs the scripts of a package. */
const pnpm = `#!/bin/sh
case $2 in
  lint) exit 3 ;;
  test) echo '{"passed":7,"skipped":0,"skippedFiles":[],"failures":["a.test.ts: no"]}' >"$TEST_REPORTS/tally.json"; exit 1 ;;
esac
`;

test('the failed tasks, also those that run no tests, follow the failed tests, and the tally counts only tests', async () => {
  const folder = await temporaryFolder();
  const [bin, reports] = [join(folder, 'bin'), join(folder, 'reports')];
  await Promise.all([mkdir(bin), mkdir(reports)]);
  const scripts = { lint: 'lint', test: 'test', typecheck: 'typecheck' };
  const files = {
    'package.json': { name: 'root', packageManager: 'pnpm@12.21.0', scripts },
    'pnpm-workspace.yaml': { packages: ['packages/*'] },
    'pnpm-lock.yaml': {},
    'turbo.json': {
      globalPassThroughEnv: ['TEST_REPORTS'],
      tasks: { '//#lint': {}, '//#test': {}, '//#typecheck': {} },
    },
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content));
  await writeFile(join(bin, 'pnpm'), pnpm, { mode: 0o755 });
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, TEST_REPORTS: reports };
  const args = [join(import.meta.dirname, 'turbo.ts'), 'run', ...Object.keys(scripts), '--continue=always'];
  const failed = await promisify(execFile)(process.execPath, args, { cwd: folder, env }).catch((error) => error);
  expect(failed.stdout).toMatch(
    /\na\.test\.ts: no\nFailed tasks: \/\/#lint, \/\/#test\n0 skipped: .*\n7 passed, 1 failed\n$/,
  );
  expect(failed.code).toBe(3);
  // `.ci/run` prints this file.
  expect(await readFile(join(reports, 'failures'), 'utf8')).toBe('a.test.ts: no\nFailed tasks: //#lint, //#test\n');
  expect(await readdir(join(folder, '.turbo/runs'))).toEqual([]);
});
