import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** A process that has not exited after this time is killed: a gateway lets calls finish, a server writes a checkpoint. */
const endLimitMs = 20_000;

/** Ends a process that was started here, even if it is suspended. Resolves when it has ended. */
export async function endProcess(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGCONT');
  child.kill(signal);
  const timeout = setTimeout(() => child.kill('SIGKILL'), endLimitMs);
  await ended;
  clearTimeout(timeout);
}
