import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { ConnectionStuck, isConnectionLost } from './errors.ts';
import type { Address } from './sockets.ts';

/** How often a probe looks for the server of a session that stays silent. */
const probeEveryMs = 1_000;

/** A session as its server identifies it. */
export interface Session {
  /** When the server started, which distinguishes it from every other server. */
  readonly server: string;
  readonly pid: string;
}

/**
 * The state of a silent session. `running`: its server responds to other sessions, so its statement is only slow.
 * `stuck`: in addition, the session waits for something that no timeout ends, such as a synchronous standby. `unknown`:
 * its server is too busy to open another session. `lost`: another server responds, or none does.
 */
export type SessionState = 'running' | 'stuck' | 'unknown' | 'lost';

/**
 * Finds the state of a session; shared by all clients of a process. The session is `undefined` while it is being
 * opened.
 */
export interface ServerProbe {
  stateOf(session: Session | undefined, address: Address): Promise<SessionState>;
  /** Adds a connection, which is kept until it ends. */
  register(connection: IdentifiedConnection): void;
  /**
   * Ends all connections to a server that is lost. Otherwise each would wait for its own probe, one after the other.
   */
  reportLost(server: string): void;
}

/** A connection that ends when any connection notices that its server is lost. */
export interface IdentifiedConnection extends Pick<WatchedConnection, 'address' | 'isOver' | 'onLost'> {
  /** Its server; `undefined` while the connection is being opened. */
  server(): string | undefined;
  /** When it last had a response, by `performance.now()`. */
  respondedMs(): number;
}

/**
 * The time at which the server that runs the statement started, in seconds. It is also correct behind a pooler or a
 * proxy.
 */
export const serverStart = sql`extract(epoch from pg_postmaster_start_time())::text`;

/** The connection whose session is watched. */
export interface WatchedConnection {
  readonly db: PostgresJsDatabase;
  /** The address of its socket; `undefined` before a socket exists. */
  address(): Address | undefined;
  isOver(): boolean;
  /** Called when its server is gone. */
  onLost(): void;
  /**
   * Set while a statement that missed its deadline has no response because its session is stuck. Until the session
   * responds, every other statement is stuck too.
   */
  isStuck: boolean;
  /** When a statement last had a response, by `performance.now()`. */
  respondedMs: number;
}

/**
 * Creates the watch of a connection that is not open yet. It observes the connection's session while a statement has no
 * response.
 */
export function watchSession(connection: WatchedConnection, probe: ServerProbe) {
  let session: Session | undefined;
  let state: SessionState = 'running';
  let isWatching = false;
  const silent = new Set<Promise<unknown>>();
  const { address, isOver, onLost } = connection;
  probe.register({ address, isOver, onLost, server: () => session?.server, respondedMs: () => connection.respondedMs });

  async function watch(): Promise<void> {
    isWatching = true;
    while (silent.size > 0 && !isOver()) {
      const probed = address();
      const previousState = state;
      state = probed === undefined ? 'running' : await probe.stateOf(session, probed);
      // A stuck session responds as soon as it runs again. If it has not responded after two probes, its response is
      // lost.
      const isLost = state === 'lost' || (connection.isStuck && state === 'running' && previousState === 'running');
      if (isLost && silent.size > 0) {
        onLost();
        if (state === 'lost' && session !== undefined) probe.reportLost(session.server);
      } else await sleep(probeEveryMs, undefined, { ref: false });
    }
    isWatching = false;
  }

  return {
    /**
     * Identifies the session. Must be called before the session's first statement, because the query would have to wait
     * for that statement.
     */
    async identify(): Promise<void> {
      try {
        [session] = await connection.db.execute<{ server: string; pid: string }>(
          sql`select ${serverStart} as server, pg_backend_pid()::text as pid`,
        );
      } catch (error) {
        // If a server lacks these functions, its sessions are watched without being identified.
        if (isConnectionLost(error)) throw error;
      }
    },
    /** Watches a silent statement until its response or the end of the connection. */
    watch(response: Promise<unknown>): void {
      silent.add(response);
      const onResponse = () => {
        silent.delete(response);
        connection.isStuck = false;
      };
      response.then(onResponse, onResponse);
      if (!isWatching) void watch();
    },
    /** Returns the error of a statement that missed its deadline, if its session is stuck. */
    onDeadline(): ConnectionStuck | undefined {
      connection.isStuck = state === 'stuck';
      return connection.isStuck ? new ConnectionStuck() : undefined;
    },
  };
}
