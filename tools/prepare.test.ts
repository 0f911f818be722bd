import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { temporaryFolder } from './test-resources.ts';

const gatewayOnly =
  'install --prod --frozen-lockfile --trust-lockfile --filter . --filter gateway... --filter checkout...';
const production = '{ "included": { "optionalDependencies": false } }';

// Installs with a stand-in for pnpm, which prints its arguments.
test.each([
  ['in a new clone', [], 'gateway', gatewayOnly],
  ['after its own install', ['node_modules/.bin/node'], 'gateway', gatewayOnly],
  ['after the install of everything', ['node_modules/.bin/vitest'], 'gateway', 'install'],
  ['after the install for the gateway', ['node_modules/.bin/node'], '', 'install'],
  ['in a production install', ['node_modules/.modules.yaml'], 'gateway', ''],
] as const)('%s, a command installs what it needs', async (_, files, scope, expected) => {
  const clone = join(await temporaryFolder(), 'order gateway');
  const stub = join(clone, 'bin/pnpm');
  for (const file of [stub, ...files.map((name) => join(clone, name))]) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, file === stub ? '#!/bin/sh\necho "$@"\n' : production, { mode: 0o755 });
  }
  const options = { cwd: clone, env: { PATH: process.env.PATH, npm_execpath: stub } };
  const { stdout, stderr } = await promisify(execFile)('sh', [join(import.meta.dirname, 'prepare.sh'), scope], options);
  expect([stdout, stderr.trim()]).toEqual(['', expected]);
});

test('every command of an app installs what it needs, and pnpm itself installs nothing before a command', async () => {
  const scripts: Readonly<Record<string, string>> = manifest.scripts;
  const unprepared = Object.entries(scripts).filter(([name, script]) => {
    const [, app] = /^node .*?apps\/(\w+)\/src\//.exec(script) ?? [];
    if (app === undefined) return false;
    const expected = ['gateway', 'checkout'].includes(app)
      ? /^sh tools\/prepare\.sh gateway && /
      : /^sh tools\/prepare\.sh$/;
    return !expected.test(scripts[`pre${name}`] ?? '');
  });
  expect(unprepared).toEqual([]);
  expect(await readFile('pnpm-workspace.yaml', 'utf8')).toContain('\nverifyDepsBeforeRun: false\n');
});
