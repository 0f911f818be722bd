import { createTestDatabase } from '@order-gateway/dev-postgres/testing';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { openDatabase } from '../src/open-database.ts';

test('a start that is stopped before the migration does not migrate', async () => {
  const { url: databaseUrl, drop } = await createTestDatabase();
  try {
    const signal = AbortSignal.abort('stopping');
    await expect(openDatabase({ databaseUrl, dataDir: '', migrate: true }, { signal })).rejects.toBe('stopping');
    expect(await runQuery(databaseUrl, "select to_regclass('orders') as orders")).toEqual([{ orders: null }]);
  } finally {
    await drop();
  }
});
