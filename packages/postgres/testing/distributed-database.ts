import { readFile } from 'node:fs/promises';
import { withSession } from '@order-gateway/dev-postgres/testing';
import { type CitusCluster, startCitusCluster } from '@order-gateway/dev-postgres/testing/citus';
import { migrateDatabase } from '../src/migrate.ts';

/** Returns the tables that `distribute.sql` distributes by merchant_id. */
export async function distributedTables(): Promise<string[]> {
  return (await readScript())
    .matchAll(/create_distributed_table\w*\('(\w+)', 'merchant_id'/g)
    .map(([, name = '']) => name)
    .toArray();
}

/** Starts a cluster whose database is migrated and distributed. */
export async function startDistributedCluster(): Promise<CitusCluster> {
  const cluster = await startCitusCluster();
  try {
    await migrateDatabase(cluster.url);
    await distribute(cluster.url);
    return cluster;
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

/** Runs `distribute.sql` as psql does: each statement separately, because they can't be in one transaction. */
export async function distribute(url: string): Promise<void> {
  const statements = (await readScript()).replaceAll(/^--.*$/gm, '').split(/;$/m);
  await withSession(url, async (session) => {
    for (const statement of statements) if (statement.trim() !== '') await session.unsafe(statement);
  });
}

function readScript(): Promise<string> {
  return readFile(new URL('../distribute.sql', import.meta.url), 'utf8');
}
