import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { pnpm } from './pnpm.ts';

const root = new URL('..', import.meta.url);

/** Licences that require at most that their text and notices are included. */
const allowed = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'Unlicense'];

/**
 * Whether an SPDX expression permits use under allowed licences. If the expression contains AND, all of its licences
 * must be allowed, and otherwise at least one.
 */
function isAllowed(expression: string): boolean {
  const licences = expression.replaceAll(/[()]/g, '').split(/ AND | OR /);
  const isListed = (licence: string) => allowed.includes(licence);
  return expression.includes(' AND ') ? licences.every(isListed) : licences.some(isListed);
}

test('every production dependency has an allowed licence', async () => {
  const args = ['--filter', 'gateway...', 'licenses', 'list', '--prod', '--json'];
  const { stdout } = await promisify(execFile)('sh', ['-c', `${pnpm} "$@"`, 'sh', ...args], { cwd: root });
  const packages: Record<string, { name: string }[]> = JSON.parse(stdout);
  expect(Object.values(packages).flat().length).toBeGreaterThan(50);
  const rejected = Object.entries(packages).filter(([licence]) => !isAllowed(licence));
  expect(rejected.map(([licence, found]) => `${licence}: ${found.map(({ name }) => name)}`)).toEqual([]);
});

test('isAllowed requires one licence of alternatives, and all licences of an expression that contains AND', () => {
  expect(isAllowed('(Apache-2.0 AND BSD-3-Clause)')).toBe(true);
  expect(isAllowed('(MIT OR CC0-1.0)')).toBe(true);
  expect(isAllowed('MIT AND GPL-3.0-only')).toBe(false);
  expect(isAllowed('(MIT OR GPL-3.0-only) AND CC0-1.0')).toBe(false);
  expect(isAllowed('Unknown')).toBe(false);
});
