import { startDistributedCluster } from '@order-gateway/postgres/testing/distributed-database';
import { onTestFinished } from 'vitest';
import { type OwnGateway, startOwnGateway } from '../../src/gateway/own-gateway.ts';

/** Starts a gateway on a database. It has `merchants` merchants and, as its last account, a checkout system. */
export async function startGatewayOn(url: string, merchants: number): Promise<OwnGateway> {
  const setups = [
    ...Array.from({ length: merchants }, (_, index) => ({ name: `Merchant ${index}` })),
    { name: 'Checkout', kind: 'checkout' as const, makesRefunds: true as const },
  ];
  const database = async () => ({ url, stop: async () => {} });
  const gateway = await startOwnGateway(setups, new AbortController().signal, database);
  onTestFinished(gateway.stop);
  return gateway;
}

/**
 * Starts a gateway on one server and another on a Citus cluster, both on this machine, as {@link startGatewayOn} does.
 */
export async function startComparedGateways(merchants: number): Promise<Record<'plain' | 'citus', OwnGateway>> {
  const cluster = await startDistributedCluster();
  onTestFinished(cluster.close);
  const { url: plainUrl } = await cluster.startWithoutCitus();
  return { plain: await startGatewayOn(plainUrl, merchants), citus: await startGatewayOn(cluster.url, merchants) };
}

export function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
