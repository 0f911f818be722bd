import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase } from '@gateway/dev-postgres/testing';
import type { MerchantId } from '@gateway/domain/merchant';
import { newOrder } from '@gateway/domain/testing/sample-orders';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { DatabaseError } from '../src/errors.ts';
import { migrateDatabase } from '../src/migrate.ts';
import { rowOf } from '../src/order-rows.ts';
import { openOrderStore } from '../src/order-store.ts';
import { runQuery } from '../testing/run-query.ts';

const packageFolder = join(import.meta.dirname, '..');

const tables = [
  'audit_log',
  'client_secrets',
  'events',
  'merchants',
  'orders',
  'webhook_deliveries',
  'webhook_endpoints',
];

/** The URL of an empty database, which exists until the end of the test. */
async function createDatabase(): Promise<string> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}

async function tablesOf(sql: postgres.Sql): Promise<string[]> {
  const tables = await sql`select table_name as name from information_schema.tables where table_schema = 'public'`;
  return tables.map(({ name }) => name).sort();
}

test('processes that start at the same time migrate an empty database once', async () => {
  const url = await createDatabase();
  await Promise.all([migrateDatabase(url), migrateDatabase(url), migrateDatabase(url)]);
  const sql = postgres(url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  expect(await tablesOf(sql)).toEqual(tables);
});

test('a migration whose connection is lost fails with a reason, changes nothing, and the next one succeeds', async () => {
  const url = await createDatabase();
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  const waiting = () => sql`
    select pid from pg_stat_activity where application_name = 'order-gateway migration' and datname = current_database()
    and wait_event_type = 'Lock'`;
  const outcome = sql.begin(async (session) => {
    // The last of the tables: the migration has made the others when it waits for the name.
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

test('a migration waits for that of another process, up to a limit', async () => {
  const url = await createDatabase();
  const sql = postgres(url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
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

test('a migration has no statement time limit, whatever the database sets', async () => {
  const url = await createDatabase();
  await runQuery(url, `alter database "${new URL(url).pathname.slice(1)}" set statement_timeout = 1`);
  await migrateDatabase(url);
});

test('a rejected connection parameter is named', async () => {
  const failure = migrateDatabase(`${await createDatabase()}?channel_binding=require`);
  await expect(failure).rejects.toThrow('unrecognized configuration parameter "channel_binding"');
});

test("a database that Drizzle's own migrator brought up to date is left as it is", async () => {
  const url = await createDatabase();
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  await migrate(drizzle({ client: sql }), { migrationsFolder: join(packageFolder, 'migrations') });
  const done = await sql`select * from drizzle.__drizzle_migrations`;
  await migrateDatabase(url);
  expect(await sql`select * from drizzle.__drizzle_migrations`).toEqual(done);

  const another = await createDatabase();
  await migrateDatabase(another);
  expect(await runQuery(another, 'select * from drizzle.__drizzle_migrations')).toEqual([...done]);
});

test('orders that were stored before a migration are found after it', async () => {
  const url = await createDatabase();
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  const first = await mkdtemp(join(packageFolder, 'node_modules', 'first-migration-'));
  onTestFinished(() => rm(first, { recursive: true }));
  const all = join(packageFolder, 'migrations');
  const journal = JSON.parse(await readFile(join(all, 'meta/_journal.json'), 'utf8'));
  await mkdir(join(first, 'meta'));
  await writeFile(
    join(first, 'meta/_journal.json'),
    JSON.stringify({ ...journal, entries: journal.entries.slice(0, 1) }),
  );
  await cp(join(all, '0000_first.sql'), join(first, '0000_first.sql'));
  await migrate(drizzle({ client: sql }), { migrationsFolder: first });
  const [merchant] = await sql`insert into merchants (name, client_id) values ('Shop', 'app_x') returning id`;
  const order = newOrder(Number(merchant?.id) as MerchantId);
  const { expiresAt: _, ...row } = rowOf(order);
  const columns = { ...row, createdAt: row.createdAt.toISOString() };
  const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  await sql`insert into orders ${sql(Object.fromEntries(Object.entries(columns).map(([name, value]) => [snakeCase(name), value])))}`;

  await migrateDatabase(url);
  const store = openOrderStore({ url });
  onTestFinished(() => store.close());
  expect(await store.findByToken(order.orderToken, 20_000)).toStrictEqual({
    kind: 'found',
    order,
    merchant: { name: 'Shop', mode: 'live', isDisabled: false, signingSecret: null },
  });
});

interface Snapshot {
  readonly tables: Readonly<Record<string, { readonly columns: Readonly<Record<string, Column>> }>>;
}

interface Column {
  readonly type: string;
  readonly notNull: boolean;
  readonly default?: unknown;
  readonly identity?: unknown;
}

test('each migration leaves the version before it working: what that reads stays, what it does not write is optional', async () => {
  const folder = join(packageFolder, 'migrations/meta');
  const files = (await readdir(folder)).filter((name) => name.endsWith('_snapshot.json')).sort();
  const snapshots = await Promise.all(
    files.map(async (name): Promise<Snapshot> => JSON.parse(await readFile(join(folder, name), 'utf8'))),
  );
  expect(snapshots.length).toBeGreaterThan(1);
  for (const [index, { tables }] of snapshots.slice(1).entries()) {
    for (const [table, { columns: before }] of Object.entries(snapshots[index]?.tables ?? {})) {
      const after = tables[table]?.columns ?? {};
      for (const [name, { type, notNull }] of Object.entries(before)) {
        expect(after[name], `${files[index + 1]}: ${table}.${name}`).toMatchObject({
          type,
          ...(!notNull && { notNull }),
        });
      }
      const required = Object.entries(after).filter(
        ([name, column]) => before[name] === undefined && column.notNull && column.default === undefined,
      );
      expect(required).toEqual([]);
    }
  }
});

test('the committed migrations lead to the schema in the code', async () => {
  // The tool takes only folders below its own working directory.
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
      timeout: 60_000,
    });
    expect(await readdir(out)).toEqual(before);
  } finally {
    await rm(out, { recursive: true });
  }
}, 60_000);
