import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, type TestContext, test } from 'vitest';
import { pnpm } from '../../../../../tools/pnpm.ts';
import { mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { readText } from '../../../../../tools/test-resources.ts';
import { packageManagerStarts } from '../../../src/runtime/start/package-manager.ts';
import {
  endLater,
  endProcesses,
  environment,
  isAlive,
  newClusterDir,
  postgresPid,
  skipIfTooBusy,
} from '../../helpers/gateway-process.ts';

// A gateway started by npx and pnpm, as in the README. Each of the two is a process with a shell as its child.

afterEach(endProcesses);

const isSkipped = mustSkip('a package manager that ends', process.platform === 'linux' ? undefined : 'it needs Linux');

/** Runs a command until the gateway that it starts is ready. */
async function startWith(command: string, args: readonly string[]) {
  const dataDir = await newClusterDir();
  const child = spawn(command, args, {
    cwd: join(import.meta.dirname, '../../../../..'),
    env: environment({ DATA_DIR: dataDir }),
  });
  endLater(child);
  const [stdout, stderr] = [readText(child.stdout), readText(child.stderr)];
  await expect.poll(() => stdout() + stderr(), { interval: 100 }).toContain('"ready"');
  const [pid, postgres] = [await gatewayPid(dataDir), await postgresPid(dataDir)];
  return {
    child,
    stdout,
    pid,
    /** Waits until the gateway has ended, and PostgreSQL with it, unless the stop reached its limit. */
    async stopped(skip: TestContext['skip']) {
      await expect.poll(() => isAlive(pid)).toBe(false);
      await skipIfTooBusy(stderr().includes('The stop did not end'), skip);
      await expect.poll(() => isAlive(postgres)).toBe(false);
    },
  };
}

/** Returns the id of the process that runs the gateway on a data folder, or NaN if there is none. */
async function gatewayPid(dataDir: string): Promise<number> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const isGateway = (pid: number) => {
    try {
      return (
        /^\S*node\0.*src\/main\.ts\0$/.test(readCommand(pid)) &&
        readFileSync(`/proc/${pid}/environ`, 'utf8').includes(dataDir)
      );
    } catch {
      return false;
    }
  };
  return pids.find(isGateway) ?? Number.NaN;
}

const npx = ['npx', ['-c', `${pnpm} start`]] as const;

test.skipIf(isSkipped).for([
  ['SIGTERM', 'npx'],
  ['SIGKILL', 'npx'],
  ['SIGTERM', 'pnpm'],
] as const)('%s to %s alone stops the gateway and PostgreSQL', async ([signal, name], { skip }) => {
  const { child, stdout, pid, stopped } = await startWith(...npx);
  const starts = packageManagerStarts(pid);
  expect(starts.at(-1)?.parent).toBe(child.pid);
  const target = name === 'npx' ? child.pid : starts.find((start) => isPnpm(start.parent))?.parent;
  process.kill(target ?? Number.NaN, signal);
  await stopped(skip);
  expect(stdout()).toContain('"stopping"');
});

function isPnpm(pid: number): boolean {
  return /^\S*pnpm\0/.test(readCommand(pid));
}

/** Returns the program and the arguments of a process, with a null character after each. */
function readCommand(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
}

test.skipIf(isSkipped)(
  'the end of a shell that started npx in the background does not stop the gateway',
  async ({ skip }) => {
    const [command, [option, script]] = npx;
    const shell = await startWith('sh', ['-c', `${command} ${option} "$0" & echo $!`, script]);
    if (shell.child.exitCode === null) await once(shell.child, 'exit');
    const npxPid = Number(shell.stdout().split('\n')[0]);
    expect(packageManagerStarts(shell.pid).at(-1)?.parent).toBe(npxPid);
    process.kill(npxPid, 'SIGTERM');
    await shell.stopped(skip);
  },
);

test.skipIf(isSkipped)(
  'a gateway in its own session does not depend on the package manager that started it',
  async () => {
    // `detached` does the same as setsid(1), which some machines lack.
    const options = "{ detached: true, stdio: 'inherit' }";
    const script = `require('node:child_process').spawn('node', ['apps/gateway/src/main.ts'], ${options})`;
    const { pid } = await startWith('npx', ['-c', `node -e "${script}"`]);
    expect(packageManagerStarts(pid)).toEqual([]);
    process.kill(pid, 'SIGTERM');
    await expect.poll(() => isAlive(pid)).toBe(false);
  },
);
