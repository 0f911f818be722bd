import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import {
  type Connection,
  openConnection,
  openTransactionClient,
  pinnedSettings,
  plansEveryRun,
  serverStatementTimeoutMs,
  withConnection,
} from './client.ts';
import { DatabaseError, isStarting, isUnknownStatement, redact } from './errors.ts';

const applicationName = 'order-gateway start';

/** How often a start looks for the end of the server's recovery. */
const recoveryPollMs = 500;

/**
 * The maximum number of connections that a process uses on each worker of Citus. Each of its sessions for merchants of
 * a worker uses one, and so does each session for all merchants.
 */
export const workerConnectionsMax = 20;

const citusExists = sql<boolean>`exists (select from pg_extension where extname = 'citus')`;

type Settings = Readonly<Record<string, string>>;

/**
 * Waits until the server accepts connections, if it only rejects them while it starts or recovers. How long that takes
 * depends on the write-ahead log since its last checkpoint. Rejects with any other error, without values.
 */
export async function awaitRecovery(url: string): Promise<void> {
  for (;;) {
    await using connection = openConnection({ url, applicationName });
    try {
      return await connection.open();
    } catch (error) {
      if (!isStarting(error)) throw redact(error);
    }
    await sleep(recoveryPollMs);
  }
}

/**
 * Queries what the processes of a gateway must know about their database server when they start. Rejects with an error
 * without values, for example if they can't work behind the pooler.
 */
export async function inspectServer(url: string, processes = 1) {
  const { session, isShared } = await inspectSessions(url);
  if (isShared) await requireSharedStatements(url);
  // Settings of a shared session that were not made for it may be those of another connection.
  const settings = isShared ? session.defaults : session.settings;
  // A server without Citus does not list the setting of Citus.
  const differing = Object.entries<string>({ ...pinnedSettings, ...plansEveryRun }).filter(
    ([name, value]) => name in settings && settings[name] !== value,
  );
  if (settings.statement_timeout === '0') differing.push(['statement_timeout', `${serverStatementTimeoutMs}`]);
  return {
    /**
     * Which of `fsync`, `full_page_writes` and `synchronous_commit` are off. If any of them is off, the server can
     * lose acknowledged orders (PostgreSQL 18, 19.5.1).
     */
    losesOrdersBy: ['fsync', 'full_page_writes', 'synchronous_commit'].filter(
      (name) => session.settings[name] === 'off',
    ),
    /** The settings that a pooler withholds from the gateway's sessions, with the values that the gateway needs. */
    withheldSettings: Object.fromEntries(differing),
    /** Whether the database may be distributed over several servers. */
    hasCitus: session.hasCitus,
    /** The workers of Citus that accept fewer connections than the processes can use, with that number. */
    smallWorkers: session.hasCitus ? await findSmallWorkers(url, processes * workerConnectionsMax) : {},
  };
}

/** Finds the workers that accept fewer connections. One that can't be reached does not prevent a start. */
async function findSmallWorkers(url: string, connections: number): Promise<Readonly<Record<string, number>>> {
  const readAccepted = `select current_setting('max_connections')::int - sum(setting::int) from pg_settings
    where name in ('superuser_reserved_connections', 'reserved_connections')`;
  const query = sql`select nodename || ':' || nodeport as worker, result::int as accepted
    from run_command_on_workers(${readAccepted}) where case when success then result::int end < ${connections}`;
  const workers = await withConnection({ url, applicationName }, ({ db, run }) =>
    run(() => db.execute<{ worker: string; accepted: number }>(query)),
  ).catch(() => []);
  return Object.fromEntries(workers.map(({ worker, accepted }) => [worker, accepted]));
}

/**
 * Rejects if a pooler lets several connections share a session, as with `pool_mode = transaction`. Then a lock that a
 * session holds does not belong to one connection.
 */
export async function requireOwnSession(url: string): Promise<void> {
  const { isShared } = await inspectSessions(url);
  if (isShared)
    throw new DatabaseError(
      'its pooler shares sessions, so it could not lock the schema: set MIGRATE=off and migrate with a direct connection, or set pool_mode = session',
    );
}

/**
 * Inspects the session of one connection, and compares it with that of a second connection. A pooler that shares
 * sessions gives the second connection the session that was used last, unless another process is using that session.
 */
function inspectSessions(url: string) {
  const options = { url, applicationName, settings: plansEveryRun };
  return withConnection(options, async (first) => {
    const session = await inspect(first);
    const other = await withConnection(options, inspect);
    return { session, isShared: session.pid === other.pid };
  });
}

/**
 * Rejects if a pooler shares sessions, but not the statements that are prepared in them. A second connection occupies
 * the session in which the first one has prepared a statement, so that the pooler gives the first one another session.
 * The statement runs in a transaction, because outside a transaction, the driver prepares it again.
 */
async function requireSharedStatements(url: string): Promise<void> {
  const options = { url, applicationName, settings: plansEveryRun };
  const first = openTransactionClient(options, { begin: 'begin' }, (db) =>
    db
      .select({ value: sql`${sql.placeholder('value')}::int` })
      .from(sql`(select) nothing`)
      .prepare('shared'),
  );
  await withConnection(options, async ({ db }) => {
    const runStatement = () => first.run((statement) => statement.execute({ value: 1 }));
    try {
      await runStatement();
      // If the pooler has only one session, the server ends it, so that the first connection gets a new one.
      await db.execute(sql`begin; set local idle_in_transaction_session_timeout = '1s'`);
      await runStatement();
    } catch (error) {
      throw isUnknownStatement(error) ? new DatabaseError(unsharedStatementsMessage) : error;
    } finally {
      await first.close();
    }
  });
}

const unsharedStatementsMessage =
  'its pooler shares sessions, but not their prepared statements: set pool_mode = session, or max_prepared_statements above 0 in PgBouncer 1.21 or newer';

/** Whether the database has Citus, and so may be distributed over several servers. */
export async function hasCitus(db: PostgresJsDatabase): Promise<boolean> {
  const [row] = await db.execute<{ exists: boolean }>(sql`select ${citusExists}`);
  return row?.exists ?? false;
}

async function inspect({ db, run }: Connection) {
  const settingsBy = (column: 'setting' | 'reset_val') => sql<Settings>`
    (select json_object_agg(name, ${sql.identifier(column)}) from pg_settings)`;
  const query = db
    .select({
      pid: sql<number>`pg_backend_pid()`,
      settings: settingsBy('setting').as('settings'),
      defaults: settingsBy('reset_val').as('defaults'),
      hasCitus: citusExists,
    })
    .from(sql`(select) nothing`);
  const [session] = await run(() => query.execute());
  if (session === undefined) throw new Error('the database did not describe its session');
  return session;
}
