import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, launchServer, runningServer, stopServer, superuser } from '../src/cluster.ts';
import { freePort, transientError, usualSettings } from '../src/dev-postgres.ts';
import { childrenOf } from './processes.ts';
import { withSession } from './testing.ts';

const restartLimitMs = 30_000;
const pollMs = 50;

/** A server that is not restarted when it exits. */
export type BareServer = Awaited<ReturnType<typeof launchBareServer>>;

/**
 * Starts a server on a cluster, and on a free port unless one is given. `url` names the database `gateway`, which the
 * caller creates.
 */
export async function launchBareServer(
  cluster: Cluster,
  settings: Readonly<Record<string, string>>,
  givenPort?: number | undefined,
) {
  const port = givenPort ?? (await freePort(undefined));
  const start = () => launchServer(cluster, { ...usualSettings, ...settings, port: String(port) });
  await start();
  let pid = pidOf(cluster);
  const url = `postgres://${superuser}:${cluster.password}@127.0.0.1:${port}/gateway`;
  return {
    port,
    url,
    /** Kills all its processes at the same time, as a power failure would. */
    kill: () => signalServer(pid, 'SIGKILL'),
    /** Stops it gracefully despite open connections. */
    stop: () => stopServer(cluster),
    /**
     * Suspends all its processes while its sockets stay open. From then on, only `kill` and `resume` have an effect.
     */
    hang: () => signalServer(pid, 'SIGSTOP'),
    /** Continues its processes after `hang`. */
    resume: () => signalServer(pid, 'SIGCONT'),
    /** Starts it again on the same port after it has ended. */
    async start(): Promise<void> {
      const giveUpAt = performance.now() + restartLimitMs;
      for (;;) {
        try {
          // Removes the lock file of a killed server. Its last processes may still be running.
          runningServer(cluster);
          await start();
          break;
        } catch (error) {
          if (!transientError.test(String(error)) || performance.now() > giveUpAt) throw error;
          await sleep(pollMs);
        }
      }
      pid = pidOf(cluster);
    },
    /** Makes a standby the primary. Resolves when it accepts writes. */
    promote: async () => void (await onServer({ url }, 'select pg_promote(true, 30)')),
  };
}

function pidOf(cluster: Cluster): number {
  const server = runningServer(cluster);
  if (!server) throw new Error(`no PostgreSQL runs in ${cluster.data}`);
  return server.pid;
}

/** Runs a statement in the database `postgres` of a server. */
export function onServer({ url }: { readonly url: string }, statement: string): Promise<readonly object[]> {
  return withSession(url.replace(/gateway$/, 'postgres'), (session) => session.unsafe(statement));
}

/** Signals a server and all its processes. */
export function signalServer(pid: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
  // Suspends the server first, so that it starts no further processes.
  trySignal(pid, 'SIGSTOP');
  for (const target of [pid, ...childrenOf(pid)]) trySignal(target, signal);
}

/** Signals a process if it still exists. */
export function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process no longer exists.
  }
}
