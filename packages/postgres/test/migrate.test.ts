import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase } from '@order-gateway/dev-postgres/testing';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { DatabaseError } from '../src/connections/errors.ts';
import { migrateDatabase } from '../src/migrate.ts';
import { orderFunctions } from '../src/orders/plpgsql-functions.ts';
import { partition } from '../testing/partitioned-database.ts';
import { startRecordingProxy } from '../testing/recording-proxy.ts';
import { runQuery } from '../testing/run-query.ts';

const packageFolder = join(import.meta.dirname, '..');

const tables = [
  'accounts',
  'audit_log',
  'brands',
  'client_secrets',
  'console_links',
  'console_sessions',
  'event_feeds',
  'events',
  'order_metadata',
  'orders',
  'payments',
  'pending_refunds',
  'refused_payments',
  'webhook_deliveries',
  'webhook_endpoints',
];

/** Creates an empty database, which exists until the end of the test. Returns its URL. */
async function createDatabase(): Promise<string> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}

/** Creates an empty database as {@link createDatabase} does, and opens a client with at most `max` connections. */
async function openDatabase(max: number) {
  const url = await createDatabase();
  const sql = postgres(url, { max, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return { url, sql };
}

async function tablesOf(sql: postgres.Sql): Promise<string[]> {
  const tables = await sql`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`;
  return tables.map(({ name }) => name).sort();
}

test('processes that start at the same time migrate an empty database once', async () => {
  const { url, sql } = await openDatabase(1);
  await Promise.all([migrateDatabase(url), migrateDatabase(url), migrateDatabase(url)]);
  expect(await tablesOf(sql)).toEqual(tables);
});

test('a migration whose connection is lost fails with a reason, changes nothing, and the next one succeeds', async () => {
  const { url, sql } = await openDatabase(2);
  const waiting = () => sql`
    select pid from pg_stat_activity where application_name = 'order-gateway migration' and datname = current_database()
    and wait_event_type = 'Lock'`;
  const outcome = sql.begin(async (session) => {
    // The migration waits for the name of this table after it has created several other tables.
    await session`create table orders (id int)`;
    const migrating = migrateDatabase(url).catch((error: unknown) => error);
    await expect.poll(waiting).toHaveLength(1);
    await sql`select pg_terminate_backend(pid) from (${waiting()}) session`;
    expect(await migrating).toEqual(new DatabaseError('no connection to the database: CONNECTION_CLOSED'));
    throw new Error('undone');
  });
  await expect(outcome).rejects.toThrow('undone');
  expect(await tablesOf(sql)).toEqual([]);
  await migrateDatabase(url);
  expect(await tablesOf(sql)).toEqual(tables);
});

test('a migration gives way to the statements that wait behind it, and tries again', async () => {
  const { url, sql } = await openDatabase(2);
  const attempts = new Set<string>();
  let migrating: Promise<void> | undefined;
  const outcome = sql.begin(async (session) => {
    await session`create table orders (id int)`;
    migrating = migrateDatabase(url);
    await expect
      .poll(async () => {
        const rows = await sql`
          select xact_start::text as start from pg_stat_activity where application_name = 'order-gateway migration'
          and datname = current_database() and wait_event_type = 'Lock'`;
        for (const { start } of rows) attempts.add(start);
        return attempts.size;
      })
      .toBeGreaterThan(2);
    throw new Error('undone');
  });
  await expect(outcome).rejects.toThrow('undone');
  await migrating;
  expect(await tablesOf(sql)).toEqual(tables);
});

test('a migration waits for the migration of another process, up to a limit', async () => {
  const { url, sql } = await openDatabase(1);
  // The number that migrations lock.
  await sql`select pg_advisory_lock(${0x6f72646572})`;
  await expect(migrateDatabase(url, 50)).rejects.toThrow(
    'timed out waiting for a lock that another database session holds',
  );
  expect(await tablesOf(sql)).toEqual([]);
  await sql`select pg_advisory_unlock(${0x6f72646572})`;
  await migrateDatabase(url, 50);
  expect(await tablesOf(sql)).toEqual(tables);
});

test('a migration that waits for another process holds no snapshot that an index build would wait for', async () => {
  const { url, sql } = await openDatabase(1);
  await sql`select pg_advisory_lock(${0x6f72646572})`;
  const migrating = migrateDatabase(url);
  const waiting = () => sql`
    select backend_xmin from pg_stat_activity where application_name = 'order-gateway migration'
    and datname = current_database() and query like '%advisory_lock%' and state = 'idle'`;
  await expect.poll(waiting).toEqual([{ backend_xmin: null }]);
  await sql`select pg_advisory_unlock(${0x6f72646572})`;
  await migrating;
});

test('a migration has no statement time limit, regardless of the setting of the database', async () => {
  const url = await createDatabase();
  await runQuery(url, `alter database "${new URL(url).pathname.slice(1)}" set statement_timeout = 1`);
  await migrateDatabase(url);
});

test('the error names a connection parameter that the server rejects', async () => {
  const failure = migrateDatabase(`${await createDatabase()}?work_memory=4MB`);
  await expect(failure).rejects.toThrow('unrecognized configuration parameter "work_memory"');
});

/**
 * Makes all migrations but the first run again: drops their tables, their columns and two of the indexes that they
 * build concurrently, and deletes their records.
 */
async function undoLaterMigrations(url: string): Promise<void> {
  await runQuery(url, 'drop view instruction_changes');
  await runQuery(url, 'drop table console_links, console_sessions, pending_refunds');
  await runQuery(url, 'drop index orders_payment, refused_payments_payment_id');
  await runQuery(url, 'alter table accounts drop late_days, drop gets_customer_data, drop makes_refunds');
  await runQuery(url, 'alter table brands drop payment_instructions');
  await runQuery(url, 'alter table orders drop ended_attempts, drop reversals');
  await runQuery(url, 'alter table payments drop paid_on, drop note');
  await runQuery(url, 'alter table refused_payments drop refunded_at');
  await runQuery(
    url,
    'delete from drizzle.__drizzle_migrations where id > (select min(id) from drizzle.__drizzle_migrations)',
  );
}

const newIndexes = (url: string) =>
  runQuery(
    url,
    `select indexrelid::regclass::text as name, indisvalid from pg_index
     where indexrelid::regclass::text in ('orders_payment', 'refused_payments_payment_id') order by 1`,
  );

const bothValid = [
  { name: 'orders_payment', indisvalid: true },
  { name: 'refused_payments_payment_id', indisvalid: true },
];

test("migrations that Drizzle's own migrator applied are kept, and are recorded in the same way", async () => {
  const url = await createDatabase();
  await migrateDatabase(url);
  const done = await runQuery(url, 'select * from drizzle.__drizzle_migrations');
  await migrateDatabase(url);
  expect(await runQuery(url, 'select * from drizzle.__drizzle_migrations')).toEqual(done);

  // Drizzle's migrator runs all migrations in one transaction, in which no index can be built concurrently.
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(join(packageFolder, 'migrations'), folder, { recursive: true });
  const journal = JSON.parse(await readFile(join(folder, 'meta/_journal.json'), 'utf8'));
  await writeFile(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries: [journal.entries[0]] }));
  const { url: otherUrl, sql } = await openDatabase(1);
  await migrate(drizzle({ client: sql }), { migrationsFolder: folder });
  expect(await runQuery(otherUrl, 'select * from drizzle.__drizzle_migrations')).toEqual(done.slice(0, 1));
  await migrateDatabase(otherUrl);
  expect(await runQuery(otherUrl, 'select * from drizzle.__drizzle_migrations')).toEqual(done);
});

test('an index is built without blocking writes, and is built again if the connection is lost', async () => {
  const { url, sql } = await openDatabase(2);
  await migrateDatabase(url);
  await undoLaterMigrations(url);
  const building = () => sql`
    select pid from pg_stat_activity where application_name = 'order-gateway migration' and datname = current_database()
    and query ilike 'create index concurrently%' and wait_event_type = 'Lock'`;
  await sql.begin(async (session) => {
    await session`lock table orders in row exclusive mode`;
    const migrating = migrateDatabase(url).catch((error: unknown) => error);
    await expect.poll(building).toHaveLength(1);
    await sql.begin((writer) => writer`lock table orders in row exclusive mode nowait`);
    await sql`select pg_terminate_backend(pid) from (${building()}) session`;
    expect(await migrating).toEqual(new DatabaseError('no connection to the database: CONNECTION_CLOSED'));
  });
  expect(await newIndexes(url)).toEqual([{ name: 'orders_payment', indisvalid: false }]);
  await Promise.all([migrateDatabase(url), migrateDatabase(url)]);
  expect(await newIndexes(url)).toEqual(bothValid);
});

test('a migration that builds an index concurrently and does more is rejected with a reason', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'meta'));
  const entries = [{ idx: 0, version: '7', when: 1, tag: '0000_mixed', breakpoints: true }];
  await writeFile(join(folder, 'meta/_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }));
  const statements = ['create table t (id int)', 'CREATE INDEX CONCURRENTLY "t_id" ON "t" USING btree ("id")'];
  await writeFile(join(folder, '0000_mixed.sql'), statements.join(';--> statement-breakpoint\n'));
  const migrating = migrateDatabase(await createDatabase(), waitLimitMs, { folder, table: '__mixed_migrations' });
  await expect(migrating).rejects.toThrow('a migration that builds an index concurrently must contain nothing else');
});

test('an index of a partitioned table is built on each partition', async () => {
  const url = await createDatabase();
  await migrateDatabase(url);
  await undoLaterMigrations(url);
  await partition(url);
  // An interrupted attempt leaves an index in this state.
  await runQuery(
    url,
    'create index orders_payment_orders_1 on orders_1 (merchant_id, payment_id) where payment_id is not null',
  );
  await runQuery(url, "update pg_index set indisvalid = false where indexrelid = 'orders_payment_orders_1'::regclass");
  await migrateDatabase(url);
  expect(await newIndexes(url)).toEqual(bothValid);
  const partitionIndexes = await runQuery(
    url,
    `select indrelid::regclass::text as table, indisvalid from pg_inherits join pg_index on indexrelid = inhrelid
     where inhparent = 'orders_payment'::regclass order by 1`,
  );
  expect(partitionIndexes).toEqual([0, 1, 2, 3].map((number) => ({ table: `orders_${number}`, indisvalid: true })));
});

test('the schema of an earlier checkout, whose migrations were generated again, is rejected with a reason', async () => {
  const url = await createDatabase();
  await migrateDatabase(url);
  await runQuery(url, 'update drizzle.__drizzle_migrations set created_at = created_at - 1');
  await expect(migrateDatabase(url)).rejects.toThrow(
    new DatabaseError("its schema is from an earlier checkout and can't be migrated: use a new database or DATA_DIR"),
  );
});

test('partitions have the columns, keys and checks of the tables that they replace', async () => {
  const describe = (url: string) =>
    runQuery(
      url,
      `select conrelid::regclass::text as table, conname, pg_get_constraintdef(oid) as definition from pg_constraint
       where conrelid in ('orders'::regclass, 'events'::regclass)
       union all select attrelid::regclass::text, attname, format('%s %s', atttypid::regtype, attnotnull)
       from pg_attribute where attrelid in ('orders'::regclass, 'events'::regclass) and attnum > 0 and not attisdropped
       union all select indrelid::regclass::text, relname, replace(pg_get_indexdef(indexrelid), ' ONLY ', ' ')
       from pg_index join pg_class on pg_class.oid = indexrelid where indrelid in ('orders'::regclass, 'events'::regclass)
       order by 1, 2, 3`,
    );
  const url = await createDatabase();
  await migrateDatabase(url);
  const before = await describe(url);
  await partition(url);
  expect(await describe(url)).toEqual(before);
});

test('every unique key of a table with merchant_id, except the key of the payments, contains merchant_id, so that the tables can be sharded by it', async () => {
  const url = await createDatabase();
  await migrateDatabase(url);
  const keys = await runQuery(
    url,
    `select indexrelid::regclass::text as key, column_name from pg_index
     join information_schema.columns on table_name = indrelid::regclass::text and column_name = 'merchant_id'
     left join pg_attribute on attrelid = indrelid and attname = column_name and attnum = any(indkey)
     where indisunique and attnum is null`,
  );
  expect(keys).toEqual([{ key: 'payments_checkout_id_payment_id_pk', column_name: 'merchant_id' }]);
});

test('every statement of a migration is sent separately, as distributed tables require, and in the transaction of its migration unless it builds an index concurrently', async () => {
  const proxy = await startRecordingProxy(await createDatabase());
  onTestFinished(() => proxy.close());
  await migrateDatabase(proxy.url);
  // The body of a function or block is one string, which may contain semicolons.
  const texts = proxy.texts.map((text) =>
    text
      .replaceAll(/\$\$.*?\$\$/gs, "''")
      .trim()
      .toLowerCase(),
  );
  expect(texts.filter((text) => text.slice(0, -1).includes(';'))).toEqual([]);
  const boundaries = texts.filter((text) => /^(begin|commit|rollback)/.test(text));
  expect(boundaries).toEqual(boundaries.map((_, index) => (index % 2 === 0 ? 'begin' : 'commit')));
  let isInTransaction = false;
  for (const text of texts) {
    if (/^(begin|commit)/.test(text)) isInTransaction = text === 'begin';
    else if (/^(create table "|alter|create index)/.test(text)) {
      expect([text, isInTransaction]).toEqual([text, !text.startsWith('create index concurrently ')]);
    }
  }
});

test('the committed migrations create the functions in the code', async () => {
  const folder = join(packageFolder, 'migrations');
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql'));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  for (const definition of orderFunctions) expect(texts.join('')).toContain(definition);
});

test('the committed migrations lead to the schema in the code', async () => {
  // The tool accepts only folders below its own working directory.
  const out = await mkdtemp(join(packageFolder, 'node_modules', 'migrations-'));
  try {
    await cp(join(packageFolder, 'migrations'), out, { recursive: true });
    const before = await readdir(out);
    const args = [
      'generate',
      '--dialect',
      'postgresql',
      '--schema',
      'src/schema.ts',
      '--out',
      `node_modules/${out.split('/').at(-1)}`,
    ];
    await promisify(execFile)(join(packageFolder, 'node_modules/.bin/drizzle-kit'), args, {
      cwd: packageFolder,
      timeout: waitLimitMs,
    });
    expect(await readdir(out)).toEqual(before);
  } finally {
    await rm(out, { recursive: true });
  }
});
