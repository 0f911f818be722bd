import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const configFolder = new URL('../../../../deploy/failover/', import.meta.url);

/** The time for a program to listen, and to end. */
const limitMs = 30_000;

/** A program that this process started. */
export interface Program {
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
  /** Ends it, at once if it does not end by itself. */
  stop(): Promise<void>;
}

/** Reads a configuration of deploy/failover with other words instead of its examples, each of which must be there. */
export async function documentedConfig(name: string, replacements: Readonly<Record<string, string>>): Promise<string> {
  let text = await readFile(new URL(name, configFolder), 'utf8');
  for (const [example, real] of Object.entries(replacements)) {
    if (!text.includes(example)) throw new Error(`${name} has no ${example}`);
    text = text.replaceAll(example, real);
  }
  return text;
}

/** Starts a program that listens on these ports of 127.0.0.1, with its output in a file. */
export async function startProgram(
  [file = '', ...args]: readonly string[],
  { ports, logFile, ids = {} }: { ports: readonly number[]; logFile: string; ids?: { uid?: number; gid?: number } },
): Promise<Program> {
  const log = openSync(logFile, 'a');
  // A process group of its own, so that Ctrl-C ends this process alone, which then stops it.
  const child = spawn(file, args, { ...ids, detached: true, stdio: ['ignore', log, log], cwd: '/' });
  const failed = once(child, 'error').then(([error]) => {
    throw new Error(`${file} does not run: ${error.message}`);
  });
  failed.catch(() => {});
  await Promise.race([failed, Promise.all(ports.map((port) => listens(child, port, logFile)))]);
  return {
    pid: child.pid ?? 0,
    signal: (signal) => void child.kill(signal),
    stop: () => end(child),
  };
}

async function listens(child: ChildProcess, port: number, logFile: string): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (isOpen) return;
    if (child.exitCode !== null || performance.now() > giveUpAt) {
      await end(child);
      throw new Error(
        `${child.spawnfile} does not listen on ${port}: ${(await readFile(logFile, 'utf8')).slice(-2_000)}`,
      );
    }
    await sleep(50);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGCONT');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  await ended;
  clearTimeout(timer);
}
