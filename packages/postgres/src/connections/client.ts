import type { Meter } from '@opentelemetry/api';
import type { AccountId } from '@order-gateway/domain/accounts';
import { sql } from 'drizzle-orm';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres, { type Notice } from 'postgres';
import { parseConnectionUrl } from './connection-url.ts';
import {
  ConnectionLost,
  ConnectionStuck,
  isConnectionLost,
  isUnprepared,
  redact,
  withRedactedErrors,
} from './errors.ts';
import { type ServerProbe, watchSession } from './session-watch.ts';
import { type Address, createAddresses, type OpenedSocket, openSocket, type SocketTarget } from './sockets.ts';

/** The server cancels a statement after this time, so only a dead connection reaches the client-side deadline. */
export const serverStatementTimeoutMs = 4_000;

/**
 * The client-side deadline of a statement. On a half-open connection, the driver waits forever. The first statement of
 * a connection also opens the session in this time.
 */
const clientStatementTimeoutMs = 5_000;

/** A statement without a response for this long is silent, and the client checks whether its server still exists. */
const silentAfterMs = 1_000;
const silentMessage = 'the database server no longer responds';

/**
 * Removes the limit of {@link ConnectionOptions.statementTimeoutMs}. The driver does not send a 0, so this is
 * PostgreSQL's maximum, 25 days.
 */
export const noStatementTimeoutMs = 2_147_483_647;

/**
 * Makes PostgreSQL plan a prepared statement for each run, if it is in {@link ConnectionOptions.settings}. A plan made
 * while a table was nearly empty keeps scanning the table until PostgreSQL analyzes it again, which takes about a
 * minute.
 */
export const plansEveryRun = { plan_cache_mode: 'force_custom_plan' } as const;

/**
 * The settings of every session, regardless of those of the role or the database. They are the same for all
 * connections, because behind a pooler with `pool_mode = transaction`, a session serves several of them.
 */
export const pinnedSettings = {
  // The driver reads no other format.
  bytea_output: 'hex',
  // If it is off, the NULL in an array literal is a text.
  array_nulls: 'on',
  // An insert of an existing order would fail at any other level, and find the order at this one.
  default_transaction_isolation: 'read committed',
  // At `error`, PostgreSQL would not send the warning of `isReplicationGivenUp`.
  client_min_messages: 'notice',
  // Compiling a statement takes longer than running it: 110 ms for a page of a list that takes 5 ms.
  jit: 'off',
  // With more than one connection to each worker of Citus, the sessions of a process would use up to 92 connections of
  // a worker, because a session keeps those that it once opened. Without Citus, the setting has no effect.
  'citus.max_adaptive_executor_pool_size': '1',
} as const;

/** The options of every part of the gateway that uses the database. */
export interface DatabaseOptions {
  readonly url: string;
  /** Reports when the database is lost and when it is back. */
  readonly connectionEvents?: ConnectionEvents | undefined;
  /** Creates the metrics; absent: none. */
  readonly meter?: Meter | undefined;
  /** Looks for the server of a statement without a response. Absent: such a statement ends only at its deadline. */
  readonly probe?: ServerProbe | undefined;
  /** Whether merchants may be on different servers. `merchant-servers.ts` then opens what each `server` has. */
  readonly isDistributed?: boolean | undefined;
  /**
   * The server that has the merchants of these statements, if they are on different servers. Then a statement concerns
   * only one of them, so that Citus sends it to one shard.
   */
  readonly server?: MerchantServer | undefined;
  /**
   * Multiplies the time limits that a busy machine can exceed. Default: 1. Most tests set it, because they are not
   * about these limits.
   */
  readonly patience?: number | undefined;
}

/** One of the servers of a database that is distributed. */
export interface MerchantServer {
  /** Its number in the metadata of Citus; 0 is the coordinator. */
  readonly number: number;
  /** Returns the id of any merchant whose orders it has. The merchant need not exist. */
  readonly anyMerchant: () => AccountId;
}

/** How a connection to the database is opened. */
export interface ConnectionOptions extends DatabaseOptions {
  /** Visible in pg_stat_activity. */
  readonly applicationName: string;
  /** Time after which the server cancels a statement. Default: {@link serverStatementTimeoutMs}. */
  readonly statementTimeoutMs?: number;
  /**
   * A setting with which the connection starts. A pooler rejects a startup parameter that its configuration does not
   * name, so other settings belong in {@link pinnedSettings} or in a transaction ({@link openTransactionClient}).
   */
  readonly settings?: typeof plansEveryRun & { readonly [name in `${'default' | 'enable'}_${string}`]?: never };
}

/** An object with connections to the database, which it closes. */
export interface Closable {
  /** Lets running calls finish for a limited time, then closes the connections. */
  close(): Promise<void>;
}

/** One connection to the database. The first statement opens it, and it is never reopened. */
export interface Connection extends AsyncDisposable {
  /** Runs statements without a client-side deadline, after {@link open} or {@link run}. */
  readonly db: PostgresJsDatabase;
  /** Opens the session and sets it up, under the client-side deadline. {@link run} does the same. */
  open(): Promise<void>;
  /** Whether the connection was lost or closed. */
  isOver(): boolean;
  /**
   * Runs a statement under the client-side deadline. If the connection is lost or does not respond in time, it is
   * destroyed, and its other statements fail too. The same happens as soon as a probe finds that the server is gone. If
   * the connection waits for a commit that the server can't end, it is kept, and further statements are rejected at
   * once until the commit ends. Rejects with the statement's own error or {@link ConnectionLost}.
   */
  run<Rows>(statement: () => Promise<Rows>): Promise<Rows>;
  /** Closes the connection; running statements have a second to finish. */
  close(): Promise<void>;
}

/** A client of the database. It has one connection at a time and replaces it after it is lost. */
export interface DatabaseClient<Statements> {
  /** Runs a statement as {@link Connection.run} does. */
  run<Rows>(statement: (statements: Statements) => Promise<Rows>): Promise<Rows>;
  /** Closes the connection; running statements have a second to finish. */
  close(): Promise<void>;
}

/**
 * The state of the database as the clients of a process see it. The reason contains no SQL, no values and no password.
 */
export type ConnectionChange = { readonly kind: 'lost'; readonly reason: string } | { readonly kind: 'restored' };

/** Reports to the process that the database is lost or restored; shared by all of its clients. */
export interface ConnectionEvents {
  failed(client: object, reason: string): void;
  succeeded(client: object): void;
}

/**
 * Reports one `lost` when the first client loses its connection, and one `restored` when a client that lost its
 * connection can run statements again. Clients that never noticed the outage are ignored, because a late response would
 * look like a recovery.
 */
export function createConnectionEvents(onChange: (change: ConnectionChange) => void): ConnectionEvents {
  const failing = new Set<object>();
  return {
    failed(client, reason) {
      if (failing.size === 0) onChange({ kind: 'lost', reason });
      failing.add(client);
    },
    succeeded(client) {
      if (!failing.has(client)) return;
      failing.clear();
      onChange({ kind: 'restored' });
    },
  };
}

/** Opens a client. `prepare` builds the prepared statements of a connection; it is called again after a reconnect. */
export function openClient<Statements>(
  options: ConnectionOptions,
  prepare: (db: PostgresJsDatabase) => Statements,
): DatabaseClient<Statements> {
  const nextAddress = createAddresses();
  const opened = options.meter?.createCounter('order_gateway.database.connections', {
    description: 'Connections opened: the first of each client, and those that replace a lost one',
  });
  const open = () => {
    opened?.add(1, { client: options.applicationName });
    const connection = openConnection(options, nextAddress);
    return { connection, statements: prepare(connection.db) };
  };
  let current = open();
  let isClosed = false;
  const client: DatabaseClient<Statements> = {
    async run(statement) {
      if (current.connection.isOver() && !isClosed) current = open();
      const { connection, statements } = current;
      try {
        const rows = await connection.run(() => statement(statements));
        options.connectionEvents?.succeeded(client);
        return rows;
      } catch (error) {
        if ((isConnectionLost(error) || isUnprepared(error)) && !isClosed)
          options.connectionEvents?.failed(client, redact(error).message);
        throw error;
      }
    },
    close() {
      isClosed = true;
      return current.connection.close();
    },
  };
  return client;
}

/**
 * Opens a connection of postgres.js and sets every limit explicitly. The driver (3.4.9) can reconnect, but it then
 * sometimes sends no startup message and hangs. A driver client that was ended also keeps connecting for its waiting
 * statements. So each driver client is used for one connection and destroyed with it.
 */
export function openConnection(options: ConnectionOptions, nextAddress = createAddresses()): Connection {
  const { url, applicationName, settings = {}, probe, patience = 1 } = options;
  const statementTimeoutMs = (options.statementTimeoutMs ?? serverStatementTimeoutMs) * patience;
  const responseTimeoutMs = clientStatementTimeoutMs * patience;
  const silentMs = silentAfterMs * patience;
  const { driverUrl, tls } = parseConnectionUrl(url);
  let address: Address | undefined;
  let opened: OpenedSocket | undefined;
  let isOver = false;
  const running = new Set<(error: Error) => void>();
  const fail = (error: Error) => {
    for (const reject of running) reject(error);
  };
  const destroy = () => {
    isOver = true;
    // The driver only ends the socket, which a hung server never notices.
    opened?.destroy();
    void client.end({ timeout: 0 });
    // The driver never settles statements that wait for a connection. It rejects all other statements with the reason
    // before this runs.
    setImmediate(() => fail(new ConnectionLost()));
  };
  // The driver's types lack `socket`, which its README documents under "Custom socket".
  const driverOptions = {
    max: 1,
    // The deadline of the first statement ends the attempt.
    connect_timeout: 0,
    // By default, the driver closes a connection after up to an hour, and a statement would wait for a new one.
    max_lifetime: null,
    idle_timeout: 0,
    // Arrays are sent as literals, so their types need not be queried at every connection.
    fetch_types: false,
    onnotice: (notice: Notice) => {
      if (!isReplicationGivenUp(notice)) return;
      // The notice is read before the success of its statement. It may concern any running statement, so all of them
      // fail.
      fail(new ConnectionLost(replicationMessage));
      destroy();
    },
    onclose: destroy,
    connection: {
      application_name: applicationName,
      statement_timeout: statementTimeoutMs,
      TimeZone: 'UTC',
      // A database may have a different default, which makes `Date` mistake the day for the month.
      DateStyle: 'ISO, MDY',
      ...settings,
    },
    ssl: false,
    // While it connects, the driver calls this repeatedly until a host accepts the connection.
    socket: async (target: SocketTarget) => {
      address = await nextAddress(target);
      if (isOver) throw new ConnectionLost();
      opened = openSocket(address, tls);
      return opened.socket;
    },
  };
  const client = postgres(driverUrl, driverOptions);
  const db = drizzle({ client });
  const onLost = () => {
    fail(new ConnectionLost(silentMessage));
    destroy();
  };
  const watched = { db, address: () => address, isOver: () => isOver, onLost, isStuck: false, respondedMs: 0 };
  const watch = probe && watchSession(watched, probe);
  let settingUp: Promise<unknown> | undefined;
  // Both statements are sent at once. Without the settings, no other statement may run.
  const setUp = () =>
    (settingUp ??= Promise.all([db.execute(pinSettings), watch?.identify()]).catch((error) => {
      destroy();
      throw error;
    }));
  const close = async () => {
    await client.end({ timeout: 1 });
    destroy();
  };
  const connection: Connection = {
    db,
    isOver: () => isOver,
    open: () => connection.run(async () => {}),
    async run(statement) {
      if (watched.isStuck) throw new ConnectionStuck();
      const { promise: failure, reject } = Promise.withResolvers<never>();
      running.add(reject);
      const response = setUp().then(statement);
      let timer = setTimeout(() => {
        const onDeadline = () =>
          reject(watch?.onDeadline() ?? new ConnectionLost(`no response from the database in ${responseTimeoutMs} ms`));
        timer = setTimeout(onDeadline, responseTimeoutMs - silentMs);
        watch?.watch(response);
      }, silentMs);
      try {
        const rows = await Promise.race([response, failure]);
        watched.respondedMs = performance.now();
        return compactRows(rows);
      } catch (error) {
        if (isConnectionLost(error) && !(error instanceof ConnectionStuck)) destroy();
        throw error;
      } finally {
        clearTimeout(timer);
        running.delete(reject);
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return connection;
}

const pinSettings = sql`select ${sql.join(
  Object.entries(pinnedSettings).map(([name, value]) => sql.raw(`set_config('${name}', '${value}', false)`)),
  sql`, `,
)}`;

/** How a transaction begins and ends. */
export interface TransactionOptions {
  /** The statement that opens it, such as `begin isolation level serializable`. */
  readonly begin: string;
  /** Whether a result is returned before it is committed. The client's next statement runs after the commit. */
  readonly returnsEarly?: boolean;
}

/**
 * Opens a client that runs statements one after the other, each in its own transaction. Settings of a transaction also
 * hold behind a pooler. The driver's own transactions end the process if a backend is killed (postgres.js 3.4.9, issue
 * 1066).
 */
export function openTransactionClient<Statements>(
  options: ConnectionOptions,
  transaction: TransactionOptions,
  prepare: (db: PostgresJsDatabase) => Statements,
): DatabaseClient<Statements> {
  const { run, close } = openClient(options, (db) => ({ db, statements: prepare(db) }));
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(statement) {
      const result = last.then(() =>
        run(({ db, statements }) => inTransaction(db, transaction, () => statement(statements))),
      );
      last = result.catch(() => {});
      return result;
    },
    close,
  };
}

/**
 * Runs a statement in a transaction. The driver sends statements in the order in which they are executed, and does not
 * wait for responses. So a result that is returned early takes one round trip instead of three.
 */
async function inTransaction<Result>(
  db: PostgresJsDatabase,
  { begin, returnsEarly = false }: TransactionOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  const begun = db.execute(sql.raw(begin)).execute();
  const [result] = await Promise.all([work(), begun]).catch(async (error) => {
    // A lost connection has ended the transaction.
    if (!isConnectionLost(error)) await db.execute(sql`rollback`);
    throw error;
  });
  const committed = db.execute(sql`commit`).execute();
  if (returnsEarly) committed.catch(() => {});
  else await committed;
  return result;
}

/**
 * Opens a separate connection, passes it to `work`, and closes it afterwards. Rejects with an error that contains no
 * values.
 */
export async function withConnection<Result>(
  options: ConnectionOptions,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  await using connection = openConnection(options);
  return await withRedactedErrors(async () => {
    await connection.open();
    return work(connection);
  });
}

const replicationMessage = 'the database committed without waiting for its synchronous standby';

/**
 * Whether a commit stopped waiting for its synchronous standby because an administrator cancelled the wait. The server
 * then reports success with a warning (its source, syncrep.c), and the order is lost if the standby is promoted.
 */
function isReplicationGivenUp({ severity, code }: Notice): boolean {
  return severity === 'WARNING' && code === '01000';
}

/**
 * Removes the empty slots at the start of a result. If a statement fails after returning some rows, postgres.js 3.4.9
 * does not reset its row counter, so the next result on that connection starts with empty slots. Existing orders would
 * then be mistaken for inserted ones, and an account for an unknown one.
 */
function compactRows<Rows>(rows: Rows): Rows {
  if (!Array.isArray(rows) || rows.length === 0 || 0 in rows) return rows;
  return rows.filter(() => true) as Rows;
}

/**
 * Returns values as a PostgreSQL array literal (manual 8.15.6) in which every value except null is quoted. For an
 * array, the driver would infer the type of its elements, which fails for bigints.
 */
export function arrayLiteral<Item>(items: readonly Item[], pick: (item: Item) => string | number | null): string {
  return `{${items.map((item) => quoted(pick(item))).join(',')}}`;
}

const special = /[\\"]/g;

function quoted(value: string | number | null): string {
  if (value === null) return 'NULL';
  // Most values contain neither character, and searching is cheaper than replacing nothing.
  if (typeof value === 'number' || !(value.includes('"') || value.includes('\\'))) return `"${value}"`;
  return `"${value.replace(special, '\\$&')}"`;
}
