import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { isConnectionLost, StatementTimeout } from './statement-error.ts';

/** How long a connection attempt may take. */
const connectTimeoutSeconds = 5;

/** The server gives up on a statement after this long, so that only a dead connection reaches the client's own deadline. */
export const serverStatementTimeoutMs = 4_000;

/** After this long without an answer the connection is taken for dead: a query on a half-open one never settles. */
const clientStatementTimeoutMs = 5_000;

/** At least this long from one replacement to the next, so that a database that is away is not asked in a tight loop. */
const reconnectPauseMs = 100;

export interface LaneOptions {
  readonly url: string;
  /** Told to the server, and seen in pg_stat_activity. */
  readonly applicationName: string;
  readonly connectionsMax: number;
  /** Where the server gives up on a statement; 0 for never. */
  readonly statementTimeoutMs?: number;
}

/** A few connections to the database with the statements that run on them. */
export interface Lane<Statements> {
  /**
   * Runs a statement under a deadline. Where a connection was lost, or did not answer in time, all of the lane's are replaced;
   * what else was under way on them fails as a lost connection. Rejects with the driver's error or {@link StatementTimeout}.
   */
  run<Answer>(statement: (statements: Statements) => Promise<Answer>): Promise<Answer>;
  close(): Promise<void>;
}

/**
 * Opens a lane. Connections are made when the first statement runs; `prepare` says the statements, once per replacement.
 *
 * A lost connection is replaced here and never opened again by the driver: postgres.js 3.4.9 keeps what it had not yet sent
 * when a connection closes, so that the next one sends no greeting and hangs until the connect time limit.
 */
export function openLane<Statements>(
  options: LaneOptions,
  prepare: (db: PostgresJsDatabase) => Statements,
): Lane<Statements> {
  const open = () => {
    const client = openClient(options);
    return { client, statements: prepare(drizzle({ client })) };
  };
  let current = open();
  let mayConnectAt = 0;

  const replace = (used: typeof current) => {
    if (used !== current) return;
    current = open();
    mayConnectAt = Math.max(performance.now(), mayConnectAt + reconnectPauseMs);
    void used.client.end({ timeout: 0 });
  };

  return {
    async run(statement) {
      const pauseMs = mayConnectAt - performance.now();
      if (pauseMs > 0) await sleep(pauseMs);
      const used = current;
      try {
        return await withDeadline(statement(used.statements), clientStatementTimeoutMs);
      } catch (error) {
        if (isConnectionLost(error)) replace(used);
        throw error;
      }
    },
    close: () => current.client.end({ timeout: 1 }),
  };
}

/** A client of postgres.js with every bound stated. */
export function openClient(options: LaneOptions): postgres.Sql {
  const { url, applicationName, connectionsMax, statementTimeoutMs = serverStatementTimeoutMs } = options;
  return postgres(url, {
    max: connectionsMax,
    connect_timeout: connectTimeoutSeconds,
    backoff: () => reconnectPauseMs / 1_000,
    // Arrays are sent as literals, so the driver need not ask the server for its array types at every connection.
    fetch_types: false,
    onnotice: () => {},
    connection: { application_name: applicationName, statement_timeout: statementTimeoutMs, TimeZone: 'UTC' },
  });
}

async function withDeadline<Answer>(answer: Promise<Answer>, timeoutMs: number): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StatementTimeout(`no answer from the database in ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([answer, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
