import { withSession } from '@order-gateway/dev-postgres/testing';
import { type CitusCluster, type CitusOptions, startCitusCluster } from '@order-gateway/dev-postgres/testing/citus';
import { readStatements } from '../src/migrate.ts';
import { readRoles, roles, setUpAsInProduction, urlAs } from './production-database.ts';
import { runQuery } from './run-query.ts';

/** Returns the tables that `distribute.sql` distributes by merchant_id. */
export async function distributedTables(): Promise<string[]> {
  return (await readScript()).flatMap(
    (statement) => /create_distributed_table\w*\('(\w+)', 'merchant_id'/.exec(statement)?.[1] ?? [],
  );
}

/**
 * Turns a server that is set up as in production into a cluster, as docs/scaling.md says, and distributes its database.
 * `url` is for the owner.
 */
export async function startDistributedCluster(
  options?: Pick<CitusOptions, 'workerConnectionsMax'>,
): Promise<CitusCluster> {
  const cluster = await startCitusCluster({ ...options, prepare: setUpAsInProduction, roles });
  try {
    await runQuery(cluster.coordinator.url, await readRoles());
    const url = urlAs(cluster.url, 'order_gateway_owner');
    await distribute(url);
    return { ...cluster, url };
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

/** Runs `distribute.sql` as psql does: each statement separately, because they can't be in one transaction. */
export async function distribute(url: string): Promise<void> {
  await withSession(url, async (session) => {
    for (const statement of await readScript()) await session.unsafe(statement);
  });
}

function readScript(): Promise<string[]> {
  return readStatements(new URL('../distribute.sql', import.meta.url));
}
