import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { temporaryFolder } from '../../../tools/test-resources.ts';
import type { Measured } from '../src/measure/sections.ts';

export const program = join(import.meta.dirname, '../src/bench.ts');

/** Runs the bench to its end, reads its report, and checks that it leaves nothing else in its temporary folder. */
export async function bench(...args: string[]): Promise<{ stdout: string; sections: Measured[] }> {
  const TMPDIR = await temporaryFolder();
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    env: { ...process.env, TMPDIR },
  });
  expect(await readdir(TMPDIR)).toEqual(['order-gateway-bench']);
  const [file = ''] = await readdir(join(TMPDIR, 'order-gateway-bench'));
  return { stdout, ...JSON.parse(await readFile(join(TMPDIR, 'order-gateway-bench', file), 'utf8')) };
}

/**
 * Returns, by contender of a section, whether each of its runs stored orders. All other figures depend on the machine.
 */
export function outcomes({ runs }: Measured): Record<string, boolean> {
  return Object.fromEntries(
    Object.entries(runs).map(([name, contenderRuns]) => [name, contenderRuns.every(({ stored }) => stored > 0)]),
  );
}

/** Returns the outcomes of a section in which every run stored orders. */
export function allStored(names: readonly string[]): Record<string, boolean> {
  return Object.fromEntries(names.map((name) => [name, true]));
}
