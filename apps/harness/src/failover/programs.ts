import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { endProcess } from '../gateway/end-process.ts';

const configFolder = new URL('../../../../deploy/failover/', import.meta.url);

/** The time limit for a program to start listening. */
const listenLimitMs = 30_000;

/** Returns a file of deploy/failover with example values replaced. Throws if the file lacks one of the values. */
export async function documentedConfig(name: string, replacements: Readonly<Record<string, string>>): Promise<string> {
  let text = await readFile(new URL(name, configFolder), 'utf8');
  for (const [example, real] of Object.entries(replacements)) {
    if (!text.includes(example)) throw new Error(`${name} has no ${example}`);
    text = text.replaceAll(example, real);
  }
  return text;
}

/**
 * Starts a program and waits until it listens on these ports of 127.0.0.1. Its output goes to `logFile`. `cleanup`
 * stops the program.
 */
export async function startProgram(
  cleanup: AsyncDisposableStack,
  [file = '', ...args]: readonly string[],
  { ports, logFile, ids = {} }: { ports: readonly number[]; logFile: string; ids?: { uid?: number; gid?: number } },
): Promise<ChildProcess> {
  const log = openSync(logFile, 'a');
  // A separate process group, so that Ctrl-C ends only this process, which then stops the program.
  const child = spawn(file, args, { ...ids, detached: true, stdio: ['ignore', log, log], cwd: '/' });
  cleanup.defer(() => endProcess(child));
  const failed = once(child, 'error').then(([error]) => {
    throw new Error(`${file} does not run: ${error.message}`);
  });
  await Promise.race([failed, Promise.all(ports.map((port) => waitUntilListening(child, port, logFile)))]);
  return child;
}

async function waitUntilListening(child: ChildProcess, port: number, logFile: string): Promise<void> {
  const giveUpAt = performance.now() + listenLimitMs;
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    if (child.exitCode !== null || performance.now() > giveUpAt) {
      const output = (await readFile(logFile, 'utf8')).slice(-2_000);
      throw new Error(`${child.spawnfile} does not listen on ${port}: ${output}`);
    }
    await sleep(50);
  }
}
