import { startTestServer } from '@order-gateway/dev-postgres/testing';
import postgres from 'postgres';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openWriteCheck } from '../../src/connections/write-check.ts';
import { migrateDatabase } from '../../src/migrate.ts';
import { runQuery } from '../../testing/run-query.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const database = useTestDatabase();

/** Runs the check on a separate connection. Returns the reason if it fails. */
async function check(url = database.url): Promise<string | undefined> {
  const writeCheck = openWriteCheck({ url });
  try {
    return await writeCheck.run().then(
      () => undefined,
      (error: Error) => error.message,
    );
  } finally {
    await writeCheck.close();
  }
}

/** Returns a URL with a setting of the session. */
const withSetting = (setting: string, url = database.url) => Object.assign(new URL(url), { search: setting }).href;

test('the check needs only the privileges of an insert, passes if the database can store an order, and stores nothing', async () => {
  await database.sql`create role clerk login password 'clerk'`;
  onTestFinished(() => database.sql`drop owned by clerk; drop role clerk`.simple().then(() => {}));
  const url = database.url.replace(/\/\/[^@]*@/, '//clerk:clerk@');
  expect(await check(url)).toContain('permission denied');
  await database.sql`grant insert on orders to clerk`;
  expect(await check(url)).toBeUndefined();
  expect(await database.sql`select from orders`).toHaveLength(0);
});

test.each([-3_600_000, 0, 3_600_000])(
  'a clock that is %d ms ahead is reported, within the time the check takes',
  async (aheadMs) => {
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
    onTestFinished(() => void vi.restoreAllMocks());
    const writeCheck = openWriteCheck({ url: database.url });
    onTestFinished(() => writeCheck.close());
    const startedAt = performance.now();
    const { clockOffsetMs } = await writeCheck.run();
    const durationMs = performance.now() - startedAt + 1;
    expect(Math.abs(clockOffsetMs)).toBeLessThanOrEqual(Math.abs(aheadMs));
    expect(Math.abs(clockOffsetMs - aheadMs)).toBeLessThanOrEqual(aheadMs === 0 ? 0 : durationMs);
  },
);

test.each(['access exclusive', 'share'])('the check fails if the table is locked in %s mode', async (mode) => {
  const locking = postgres(database.url, { max: 1 });
  onTestFinished(() => locking.end());
  await locking.unsafe(`begin; lock table orders in ${mode} mode`);
  expect(await check()).toBe('timed out waiting for a lock that another database session holds');
  await locking.unsafe('rollback');
  expect(await check()).toBeUndefined();
});

test('the check fails in a read-only session', async () => {
  expect(await check(withSetting('default_transaction_read_only=on'))).toBe('the database is read-only');
});

test('the check fails if it cannot write its temporary file, as on a full disk', async () => {
  expect(await check(withSetting('temp_file_limit=100kB'))).toContain('53400');
});

test('the check fails if the database cannot be reached', async () => {
  expect(await check('postgres://127.0.0.1:1/gateway')).toBe('no connection to the database: ECONNREFUSED');
});

test('the check fails at its deadline if the synchronous standby is missing', async () => {
  const server = await startTestServer();
  onTestFinished(() => server.stop());
  await migrateDatabase(server.url);
  await runQuery(server.url, "alter system set synchronous_standby_names = 'no_standby'");
  await runQuery(server.url, 'select pg_reload_conf()');
  const shown = () => runQuery(server.url, 'show synchronous_standby_names');
  await expect.poll(shown).toEqual([{ synchronous_standby_names: 'no_standby' }]);
  expect(await check(server.url)).toBe('no response from the database in 5000 ms');
  // The commit itself waits. No other part of the check needs the standby.
  expect(await check(withSetting('synchronous_commit=local', server.url))).toBeUndefined();
});
