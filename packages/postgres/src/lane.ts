import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { fromNextHost, type SocketTarget, socketOpener, targetOf } from './lane-sockets.ts';
import { ConnectionCut, isConnectionLost, StatementTimeout } from './statement-error.ts';

/** How long a connection attempt may take. */
const connectTimeoutSeconds = 5;

/** The server gives up on a statement after this long, so that only a dead connection reaches the client's own deadline. */
export const serverStatementTimeoutMs = 4_000;

/** After this long without an answer the connection is taken for dead: a query on a half-open one never settles. */
const clientStatementTimeoutMs = 5_000;
const timeoutMessage = `no answer from the database in ${clientStatementTimeoutMs} ms`;

/** At least this long from one replacement to the next, so that a database that is away is not asked in a tight loop. */
const reconnectPauseMs = 100;

/** How a client of the database is opened. */
export interface LaneOptions {
  readonly url: string;
  /** Told to the server, and seen in pg_stat_activity. */
  readonly applicationName: string;
  /** Connections that it may have at a time; each is made when it is needed. */
  readonly connectionsMax: number;
  /** When the server gives up on a statement: {@link serverStatementTimeoutMs} unless given. */
  readonly statementTimeoutMs?: number;
  /**
   * Whether a prepared statement is planned whenever it runs. A plan that was made while a table was nearly empty reads all of it
   * for as long as PostgreSQL has not analyzed it anew, a minute or so: an index is found only by who looks at the size of now.
   */
  readonly plansEveryRun?: boolean;
}

/** A few connections to the database with the statements that run on them. */
export interface Lane<Statements> {
  /**
   * Runs a statement under a deadline. Where a connection was lost, or did not answer in time, all of the lane's are replaced;
   * what else was under way on them fails with {@link ConnectionCut}. Rejects with the statement's own error otherwise, or with
   * {@link StatementTimeout}.
   */
  run<Answer>(statement: (statements: Statements) => Promise<Answer>): Promise<Answer>;
  /** Ends the connections; what is under way has a second to finish. */
  close(): Promise<void>;
}

/**
 * Says the statements that run on a client: once for each client that a lane has. `connect` has the driver connect, and gives the
 * socket to those who run their statements themselves, on a lane with one connection.
 */
export type Prepare<Statements> = (db: PostgresJsDatabase, connect: () => Promise<Socket>) => Statements;

/** Opens a lane. Connections are made when the first statement runs. */
export function openLane<Statements>(options: LaneOptions, prepare: Prepare<Statements>): Lane<Statements> {
  let target = targetOf(options.url);
  let current = openLaneClient(options, target, prepare);
  let mayConnectAt = 0;
  let isClosed = false;

  const replace = (used: typeof current) => {
    if (used !== current || isClosed) return;
    // It may hang, or the driver may not want its sessions.
    if (!used.hasAnswered()) target = fromNextHost(target);
    current = openLaneClient(options, target, prepare);
    mayConnectAt = Math.max(performance.now(), mayConnectAt + reconnectPauseMs);
    used.cut();
  };

  const runNow = <Answer>(statement: (statements: Statements) => Promise<Answer>) => {
    const used = current;
    return used.run(statement, (error) => {
      if (isConnectionLost(error)) replace(used);
    });
  };

  return {
    run(statement) {
      const pauseMs = mayConnectAt - performance.now();
      return pauseMs > 0 ? sleep(pauseMs).then(() => runNow(statement)) : runNow(statement);
    },
    close() {
      isClosed = true;
      return current.close();
    },
  };
}

/**
 * A client of postgres.js 3.4.9 for as long as none of its connections is lost under a statement. Left to itself the driver opens
 * such a connection again, with what it had not yet sent, so that the new one sends no greeting and hangs until the connect time
 * limit; and a client that is ended goes on connecting for what still waits, and keeps the connection. So a client that lost one
 * is cut off: whatever is under way on it fails at once, and it gets no more sockets.
 */
function openLaneClient<Statements>(options: LaneOptions, target: SocketTarget, prepare: Prepare<Statements>) {
  const over = new AbortController();
  const [host = ''] = target.host;
  const open = socketOpener(over.signal, target);
  let socket: Socket | undefined;
  const openSocket = async () => {
    socket = await open();
    return socket;
  };
  // Whoever opens the sockets secures them, and goes from host to host: a driver that knows of several tells nobody that none is
  // there.
  const client = openClient(options, { socket: openSocket, ssl: false, host });
  const connect = async () => {
    await client`select 1`;
    if (socket === undefined || socket.destroyed) throw new ConnectionCut();
    return socket;
  };
  const statements = prepare(drizzle({ client }), connect);
  const underWay = new Set<(error: Error) => void>();
  let hasAnswered = false;
  return {
    hasAnswered: () => hasAnswered,
    run<Answer>(
      statement: (statements: Statements) => Promise<Answer>,
      onFailure: (error: unknown) => void,
    ): Promise<Answer> {
      return new Promise((resolve, reject) => {
        /** Whether it was still under way: only the first end counts. */
        const end = () => {
          clearTimeout(timer);
          return underWay.delete(fail);
        };
        const fail = (error: unknown) => {
          if (!end()) return;
          onFailure(error);
          reject(error);
        };
        const timer = setTimeout(() => fail(new StatementTimeout(timeoutMessage)), clientStatementTimeoutMs);
        underWay.add(fail);
        Promise.try(statement, statements).then((answer) => {
          if (!end()) return;
          hasAnswered = true;
          resolve(withoutHoles(answer));
        }, fail);
      });
    },
    cut() {
      over.abort();
      for (const fail of underWay) fail(new ConnectionCut());
      void client.end({ timeout: 0 });
    },
    async close(): Promise<void> {
      await client.end({ timeout: 1 });
      over.abort();
    },
  };
}

/**
 * The rows that a statement had given before it failed are counted on by postgres.js 3.4.9 in the answer of the connection's next
 * one, which begins with as many holes: orders would be taken for inserted, and a client for unknown.
 */
function withoutHoles<Answer>(answer: Answer): Answer {
  if (!Array.isArray(answer) || answer.length === 0 || 0 in answer) return answer;
  return answer.filter(() => true) as Answer;
}

/** A client of postgres.js with every bound stated. Its types lack the `socket` option, which its manual describes. */
export function openClient(
  options: LaneOptions,
  socketOptions: {
    readonly socket?: ReturnType<typeof socketOpener>;
    readonly ssl?: false;
    readonly host?: string;
  } = {},
): postgres.Sql {
  const {
    url,
    applicationName,
    connectionsMax,
    statementTimeoutMs = serverStatementTimeoutMs,
    plansEveryRun = false,
  } = options;
  return postgres(url, {
    ...socketOptions,
    max: connectionsMax,
    connect_timeout: connectTimeoutSeconds,
    backoff: () => reconnectPauseMs / 1_000,
    // The driver's own is half an hour to an hour, after which a caller would wait for a new connection.
    max_lifetime: null,
    // A connection that the driver has given away is idle to it, and would be ended under the statements that run on it.
    idle_timeout: 0,
    // Arrays are sent as literals, so the driver need not ask the server for its array types at every connection.
    fetch_types: false,
    onnotice: () => {},
    connection: {
      application_name: applicationName,
      statement_timeout: statementTimeoutMs,
      TimeZone: 'UTC',
      ...(plansEveryRun ? { plan_cache_mode: 'force_custom_plan' } : {}),
    },
  });
}
