import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { temporaryFolder } from '../../../tools/test-resources.ts';

test('the report of a run shows each fault, the time to the first order after it, and the result of the audit', async () => {
  const folder = await temporaryFolder();
  const [markdown, html] = [join(folder, 'run.md'), join(folder, 'run.html')];
  const program = join(import.meta.dirname, '../src/reliability.ts');
  const only = ['--fault', 'backend killed', '--percent', '1', '--rounds', '0', '--seed', '7'];
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  // Few enough calls are in flight that each gets its response before the client gives up, even on part of one core.
  const env = { PATH, HOME, NODE_COMPILE_CACHE, TMPDIR: folder, FAULTS_PENDING: '8' };
  const options = { env, timeout: waitLimitMs };
  const args = [program, ...only, '--markdown', markdown, '--html', html];
  const exitCode = await promisify(execFile)(process.execPath, args, options).then(
    () => 0,
    ({ code }) => code,
  );
  const [title, ...lines] = (await readFile(markdown, 'utf8')).trim().split('\n');
  expect(title).toMatch(/^# Reliability, \d{4}-\d\d-\d\d, seed 7, 1 % of the faults: /);
  expect(lines).toContainEqual(expect.stringMatching(/^\| PostgreSQL \| \d+/));
  const row = /^\| backend killed \| \d+ \| [\d.min ]+ s \| [\d.min ]+ s \| \d+ \| (?<late>\d+) \| \d+ \| 0 \|$/;
  // A table of wrong outcomes would follow.
  expect(lines.at(-1)).toMatch(row);
  const isOnTime = row.exec(lines.at(-1) ?? '')?.groups?.late === '0';
  // On a slow machine, the first order can take minutes, and calls can be late. Only late calls may fail the run.
  expect([exitCode, title?.split(': ')[1]]).toEqual(isOnTime ? [0, 'passed'] : [1, 'failed']);
  expect(await readFile(html, 'utf8')).toContain('<td>backend killed</td>');
});
