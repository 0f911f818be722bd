import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { StatementTimeout } from './statement-error.ts';

/** How long a connection attempt may take. */
const connectTimeoutSeconds = 5;

/** The server gives up on a statement after this long, so that only a dead connection reaches the client's own deadline. */
const serverStatementTimeoutMs = 4_000;

/** After this long without an answer the connection is taken for dead: a query on a half-open one never settles. */
const clientStatementTimeoutMs = 5_000;

/** Wait before a lost connection is opened again: constant and short, as the driver's own back-off grows to 20 s. */
const reconnectSeconds = 0.1;

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
   * Runs a statement under a deadline. After a deadline the connections are replaced, since the answer may never come; what
   * else was under way on them fails as a lost connection. Rejects with the driver's error or {@link StatementTimeout}.
   */
  run<Answer>(statement: (statements: Statements) => Promise<Answer>): Promise<Answer>;
  close(): Promise<void>;
}

/** Opens a lane. Connections are made when the first statement runs; `prepare` says the statements, once per replacement. */
export function openLane<Statements>(
  options: LaneOptions,
  prepare: (db: PostgresJsDatabase) => Statements,
): Lane<Statements> {
  const open = () => {
    const client = openClient(options);
    return { client, statements: prepare(drizzle({ client })) };
  };
  let current = open();

  return {
    async run(statement) {
      const used = current;
      try {
        return await withDeadline(statement(used.statements), clientStatementTimeoutMs);
      } catch (error) {
        if (error instanceof StatementTimeout && used === current) {
          current = open();
          void used.client.end({ timeout: 0 });
        }
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
    backoff: () => reconnectSeconds,
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
