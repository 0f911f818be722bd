import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { pinnedSettings, withConnection } from '../../src/connections/client.ts';
import { awaitRecovery, inspectServer } from '../../src/connections/inspect-server.ts';
import { startDatabaseProxy } from '../../testing/database-proxy.ts';
import { runQuery } from '../../testing/run-query.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const database = useTestDatabase();

test('inspectServer names the settings that can make the server lose an acknowledged order', async () => {
  const before = await inspectServer(database.url);
  await runQuery(
    database.url,
    `alter database "${new URL(database.url).pathname.slice(1)}" set synchronous_commit = off`,
  );
  const { losesOrdersBy } = await inspectServer(database.url);
  expect(losesOrdersBy).toEqual([...new Set([...before.losesOrdersBy, 'synchronous_commit'])].sort());
});

test('an ordinary server has no Citus', async () => {
  expect((await inspectServer(database.url)).hasCitus).toBe(false);
});

test('a start waits while the server recovers, and fails at once for any other reason', async () => {
  const rejection = Buffer.from('SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0');
  let connections = 0;
  const proxy = await startDatabaseProxy(database.url, (client, server) => {
    connections += 1;
    if (connections > 2) client.pipe(server).pipe(client);
    else
      client.once('data', () => client.end(Buffer.concat([Buffer.of(69, 0, 0, 0, rejection.length + 4), rejection])));
  });
  onTestFinished(() => proxy.close());
  await awaitRecovery(proxy.url);
  expect(connections).toBe(3);
  const unknown = Object.assign(new URL(proxy.url), { pathname: '/unknown' }).href;
  await expect(awaitRecovery(unknown)).rejects.toThrow('database "unknown" does not exist');
});

test('no role or database setting changes how the gateway reads and writes', async () => {
  const name = new URL(database.url).pathname.slice(1);
  const hostile = {
    bytea_output: 'escape',
    array_nulls: 'off',
    client_min_messages: 'error',
    default_transaction_isolation: 'serializable',
    jit: 'on',
    'citus.max_adaptive_executor_pool_size': '16',
  } satisfies Record<keyof typeof pinnedSettings, string>;
  for (const [setting, value] of Object.entries(hostile))
    await runQuery(database.url, `alter database "${name}" set ${setting} = '${value}'`);
  await withConnection({ url: database.url, applicationName: 'pinned' }, async ({ db }) => {
    const names = Object.keys(pinnedSettings).map((setting) => sql`current_setting(${setting})`);
    const [row] = await db.execute(sql`select array_to_json(array[${sql.join(names, sql`, `)}]) as values`);
    expect(row?.values).toEqual(Object.values(pinnedSettings));
  });
});
