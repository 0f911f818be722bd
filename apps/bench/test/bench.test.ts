import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';
import { contenderNames } from '../src/contenders.ts';
import { isInstalled } from '../src/programs.ts';
import type { Measured } from '../src/sections.ts';

const program = join(import.meta.dirname, '../src/bench.ts');
const limitMs = 240_000;
const lacksPgbench = leftOut('bench', (await isInstalled('pgbench')) ? undefined : 'pgbench is not installed');

/** A temporary folder for the bench, so that what it leaves behind is seen. */
async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function bench(...args: string[]): Promise<{ stdout: string; sections: Measured[] }> {
  const TMPDIR = await ownFolder();
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    env: { ...process.env, TMPDIR },
  });
  expect(await readdir(TMPDIR)).toEqual(['order-gateway-bench']);
  const [file = ''] = await readdir(join(TMPDIR, 'order-gateway-bench'));
  return { stdout, ...JSON.parse(await readFile(join(TMPDIR, 'order-gateway-bench', file), 'utf8')) };
}

/** Every contender of a section with whether each run stored orders. How many, and how fast, depends on the machine. */
function outcomes({ runs }: Measured): Record<string, boolean> {
  return Object.fromEntries(Object.entries(runs).map(([name, own]) => [name, own.every(({ stored }) => stored > 0)]));
}

function allGood(names: readonly string[]): Record<string, boolean> {
  return Object.fromEntries(names.map((name) => [name, true]));
}

test(
  'every contender creates orders, alone and with many callers, and nothing is left behind',
  async () => {
    const { stdout, sections } = await bench('--rounds', '1', '--seconds', '1');
    const names = contenderNames.filter((name) => name !== 'pgbench' || !lacksPgbench);
    expect(sections.map(outcomes)).toEqual([
      allGood(names),
      allGood(['gateway-json', 'gateway-grpc', 'bare-http', 'bare-http2', 'insert']),
      allGood(['gateway-grpc', 'bare-http2']),
    ]);
    expect(sections.map(({ ratios }) => ratios.length)).toEqual([lacksPgbench ? 8 : 10, 4, 1]);
    for (const name of names) expect(stdout).toContain(`| ${name} `);
  },
  limitMs,
);

test(
  'the gateway is compared on an empty table and on one that has orders',
  async () => {
    const { sections } = await bench('--growth', '1000', '--only', 'gateway-grpc', '--rounds', '1', '--seconds', '1');
    expect(sections.map(outcomes)).toEqual([allGood(['gateway-grpc', 'gateway-grpc, 1000 orders before'])]);
    expect(sections[0]?.ratios).toHaveLength(1);
  },
  limitMs,
);

test(
  'a signal stops the load and every program, and nothing is left behind',
  async () => {
    const TMPDIR = await ownFolder();
    const args = [program, '--only', 'gateway-json', '--rounds', '1', '--seconds', '20'];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, TMPDIR },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = once(child, 'exit');
    let last = '';
    for await (const line of createInterface(child.stderr)) {
      last = line;
      if (line.startsWith('warm-up')) child.kill('SIGTERM');
    }
    expect(last).toBe('Stopped.');
    expect(await exited).toEqual([1, null]);
    expect(await readdir(TMPDIR)).toEqual([]);
  },
  limitMs,
);

test.each([
  [['--rounds', '0'], "option '--rounds <number>' argument '0' is invalid. It must be a whole number above 0."],
  [['--only', 'gateway-json,x'], "option '--only <names>' argument 'gateway-json,x' is invalid. Unknown: x."],
  [['--growht', '1'], "unknown option '--growht'"],
])('%s ends with one line that says what is wrong', async (args, message) => {
  const outcome = promisify(execFile)(process.execPath, [program, ...args]);
  await expect(outcome).rejects.toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) });
});
