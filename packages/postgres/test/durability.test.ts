import { expect, test } from 'vitest';
import { settingsThatLoseOrders } from '../src/durability.ts';
import { runQuery } from '../testing/run-query.ts';
import { useTestDatabase } from '../testing/test-database.ts';

const database = useTestDatabase();

test('names the settings with which the server can lose an acknowledged order', async () => {
  const before = await settingsThatLoseOrders(database.url);
  await runQuery(
    database.url,
    `alter database "${new URL(database.url).pathname.slice(1)}" set synchronous_commit = off`,
  );
  expect(await settingsThatLoseOrders(database.url)).toEqual([...new Set([...before, 'synchronous_commit'])].sort());
});
