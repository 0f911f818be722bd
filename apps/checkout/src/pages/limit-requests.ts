import { createNetworkLimit } from '@order-gateway/runtime/network-limit';
import { remoteAddressOf, type TrustProxy } from '@order-gateway/runtime/remote-address';
import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import type { FastifyInstance } from 'fastify';

/**
 * Requests per second of one public network, and of all networks together, in one process. Customers behind a carrier's
 * NAT send dozens per second. A page takes one call of the gateway, so a flood takes a few percent of a gateway's core.
 */
const limits = { perNetwork: 100, ofAll: 300 } as const;

const rejection = 'Too many requests. Wait a second, and then load the page again.\n';

/** Limits the requests of customers and providers. Health checks have no limit. */
export function limitRequests(
  app: FastifyInstance,
  trustProxy: TrustProxy | undefined,
  monotonicNow = () => performance.now(),
): void {
  const isOverNetworkLimit = createNetworkLimit(limits.perNetwork, monotonicNow);
  const all = createTokenBuckets<'all'>(monotonicNow);
  app.addHook('onRequest', async ({ raw, url }, reply) => {
    if (url.startsWith('/health/')) return undefined;
    const isOver = isOverNetworkLimit(remoteAddressOf(raw, trustProxy)) || all('all', limits.ofAll) !== undefined;
    // Plain text, because rendering a page takes a millisecond.
    return isOver ? reply.code(429).header('retry-after', '1').send(rejection) : undefined;
  });
}
