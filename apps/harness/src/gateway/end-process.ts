import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/**
 * A process that has not exited after this time is killed. Until then, a gateway can finish its calls, and a server can
 * write its checkpoint.
 */
const endLimitMs = 20_000;

/** Ends a child process, even if it is suspended. Resolves when it has ended. */
export async function endProcess(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGCONT');
  child.kill(signal);
  const timeout = setTimeout(() => child.kill('SIGKILL'), endLimitMs);
  await ended;
  clearTimeout(timeout);
}
