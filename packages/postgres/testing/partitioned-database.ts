import { readFile } from 'node:fs/promises';
import { createTestDatabase, type TestDatabase } from '@order-gateway/dev-postgres/testing';
import { migrateDatabase } from '../src/migrate.ts';
import { runQuery } from './run-query.ts';

/** Creates a database as `createMigratedDatabase` does, and partitions the tables that `partition.sql` names. */
export function createPartitionedDatabase(): Promise<TestDatabase> {
  return createTestDatabase(migrateAndPartition);
}

async function migrateAndPartition(url: string): Promise<void> {
  await migrateDatabase(url);
  await partition(url);
}

/** Runs `partition.sql` as an operator does. */
export async function partition(url: string): Promise<void> {
  await runQuery(url, await readFile(new URL('../partition.sql', import.meta.url), 'utf8'));
}
