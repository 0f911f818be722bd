import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrateDatabase } from '@gateway/postgres/migrate';
import { startThrowawayPostgres } from '@gateway/postgres/testing/throwaway-postgres';
import { expect, test } from 'vitest';
import { keepDemoMerchant } from '../src/cli/demo-merchant.ts';

test('first starts at once agree on one demo merchant, which later starts find', async () => {
  const database = await startThrowawayPostgres();
  const dataDir = await mkdtemp(join(tmpdir(), 'demo-merchant-'));
  try {
    await migrateDatabase(database.url);
    const [first, second] = await Promise.all([
      keepDemoMerchant(database.url, dataDir),
      keepDemoMerchant(database.url, dataDir),
    ]);
    expect(second).toEqual(first);
    expect(await keepDemoMerchant(database.url, dataDir)).toEqual(first);
    expect(await readdir(dataDir)).toEqual(['demo-merchant.json']);
  } finally {
    await database.stop();
    await rm(dataDir, { recursive: true });
  }
}, 60_000);
