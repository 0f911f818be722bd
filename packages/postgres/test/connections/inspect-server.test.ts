import { expect, test } from 'vitest';
import { inspectServer } from '../../src/connections/inspect-server.ts';
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
