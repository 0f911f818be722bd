import { sql } from 'drizzle-orm';
import { openConnection } from './client.ts';
import { ConnectionLost, statementFailure } from './errors.ts';
import {
  type IdentifiedConnection,
  type ServerProbe,
  type Session,
  type SessionState,
  serverStart,
} from './session-watch.ts';
import type { Address } from './sockets.ts';

/** Time limit of a probe. Opening a session takes a few milliseconds, or a few hundred on a busy server. */
const probeTimeoutMs = 1_500;

/** Clients share a result for this long, so that a process probes an address at most four times per second. */
const resultSharedMs = 250;

/**
 * The result of one probe: a server and those of its sessions that no statement timeout can end at the moment; a server
 * that accepts no more connections, or opens none in time while it responds on others; or no server.
 */
type ProbeResult = { readonly server: string; readonly stuck: readonly string[] } | 'busy' | 'no server';

/**
 * Opens new connections to find out whether the server of a silent session still exists. All clients of a process share
 * the probe. If several ask about one address at the same time, it opens one connection. A server that opens no session
 * in time is only busy if it responds to any other session of the process in that time. `patience` multiplies the time
 * limit of a probe.
 */
export function createServerProbe(url: string, patience = 1): ServerProbe {
  const probes = new Map<string, Promise<ProbeResult>>();
  let connections: readonly IdentifiedConnection[] = [];
  const probe = (address: Address) => {
    const key = keyOf(address);
    const shared = probes.get(key);
    if (shared !== undefined) return shared;
    const startMs = performance.now();
    const hasResponded = () =>
      connections.some((connection) => connection.respondedMs() > startMs && keyOf(connection.address()) === key);
    const found = findServer(url, address, patience).then((result) =>
      result === 'no server' && hasResponded() ? 'busy' : result,
    );
    probes.set(key, found);
    void found.then(() => setTimeout(() => probes.delete(key), resultSharedMs).unref());
    return found;
  };
  return {
    stateOf: async (session, address) => stateFrom(await probe(address), session),
    register(connection) {
      connections = [...connections.filter(({ isOver }) => !isOver()), connection];
    },
    reportLost(lost) {
      for (const { server, isOver, onLost } of connections) if (server() === lost && !isOver()) onLost();
    },
  };
}

const keyOf = (address: Address | undefined) => JSON.stringify(address);

function stateFrom(result: ProbeResult, session: Session | undefined): SessionState {
  if (result === 'no server') return 'lost';
  if (result === 'busy') return 'unknown';
  if (session === undefined) return 'running';
  if (result.server !== session.server) return 'lost';
  return result.stuck.includes(session.pid) ? 'stuck' : 'running';
}

async function findServer(url: string, address: Address, patience: number): Promise<ProbeResult> {
  const options = { url, applicationName: 'order-gateway probe', statementTimeoutMs: probeTimeoutMs, patience };
  const { promise: noServer, resolve: giveUp } = Promise.withResolvers<'no server'>();
  let isTried = false;
  const connection = openConnection(options, async () => {
    if (!isTried) {
      isTried = true;
      return address;
    }
    // With several hosts in its URL, the driver would keep trying.
    giveUp('no server');
    throw new ConnectionLost();
  });
  const timer = setTimeout(() => giveUp('no server'), probeTimeoutMs * patience);
  // The statement timeout does not end waits of these types, such as a commit's wait for its standby.
  const response = connection
    .run(() =>
      connection.db.execute<{ server: string; stuck: string | null }>(sql`
        select ${serverStart} as server, (
          select string_agg(pid::text, ',') from pg_stat_activity where wait_event_type in ('IPC', 'IO', 'LWLock')
        ) as stuck`),
    )
    .then(([row]): ProbeResult => ({ server: row?.server ?? '', stuck: row?.stuck?.split(',') ?? [] }))
    .catch((error: unknown) => (statementFailure(error) === 'overloaded' ? 'busy' : 'no server'));
  try {
    return await Promise.race([response, noServer]);
  } finally {
    clearTimeout(timer);
    void connection.close();
  }
}
