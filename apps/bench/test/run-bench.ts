import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import type { Measured } from '../src/measure/sections.ts';

export const program = join(import.meta.dirname, '../src/bench.ts');

/** A temporary folder for the bench, so that a test can check that nothing remains. */
export async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs the bench to its end, and reads its report. */
export async function bench(...args: string[]): Promise<{ stdout: string; sections: Measured[] }> {
  const TMPDIR = await ownFolder();
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    env: { ...process.env, TMPDIR },
  });
  expect(await readdir(TMPDIR)).toEqual(['order-gateway-bench']);
  const [file = ''] = await readdir(join(TMPDIR, 'order-gateway-bench'));
  return { stdout, ...JSON.parse(await readFile(join(TMPDIR, 'order-gateway-bench', file), 'utf8')) };
}

/** Every contender of a section, and whether each run stored orders. The number and the speed depend on the machine. */
export function outcomes({ runs }: Measured): Record<string, boolean> {
  return Object.fromEntries(
    Object.entries(runs).map(([name, ofContender]) => [name, ofContender.every(({ stored }) => stored > 0)]),
  );
}

/** The outcomes when every run stored orders. */
export function allGood(names: readonly string[]): Record<string, boolean> {
  return Object.fromEntries(names.map((name) => [name, true]));
}
