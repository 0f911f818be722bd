import { logoTypes, type StoredLogo } from '@order-gateway/domain/accounts';
import { failed, success } from '@order-gateway/domain/result';
import type { PostgresOrderStore } from '@order-gateway/postgres/order-store';
import type { FastifyInstance } from 'fastify';
import { storageFailure } from '../../calls/store-failure.ts';
import { admitUnauthenticated } from '../../http/admit-unauthenticated.ts';
import { type HttpDeps, sendFailure } from '../../http/requests.ts';
import { cachedLogosMax } from '../../limits.ts';

/**
 * The image at an address never changes, so it can be cached permanently. The content security policy and `nosniff`
 * prevent a browser from treating the content as anything but an image. Other sites may embed the image.
 */
const headers = {
  'cache-control': 'public, max-age=31536000, immutable',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
};

export interface LogoRoutesDeps extends HttpDeps {
  /** Finds a logo by its digest. */
  readonly findLogo: PostgresOrderStore['findLogo'];
}

/** Adds the route of the logos of merchants' brands. A logo's name contains the digest of its image. */
export function logoRoutes(app: FastifyInstance, deps: LogoRoutesDeps): void {
  admitUnauthenticated(app, deps, sendFailure);
  const cache = new Map<string, StoredLogo>();
  const cacheLogo = (digest: string, logo: StoredLogo) => {
    const [oldest] = cache.size < cachedLogosMax ? [] : cache.keys();
    if (oldest !== undefined) cache.delete(oldest);
    cache.set(digest, logo);
    return success(logo);
  };
  app.get<{ Params: { name: string } }>('/logos/:name', {
    config: { operation: 'Logo' },
    async handler({ call, params }, reply) {
      const [, digest, type] = /^([\w-]{43})\.(\w+)$/.exec(params.name) ?? [];
      if (digest === undefined || !logoTypes.some((logoType) => logoType === type)) {
        return sendFailure(reply, { kind: 'not_found' }, deps);
      }
      const found = await call.run(async () => {
        const cached = cache.get(digest);
        if (cached !== undefined) return success(cached);
        const outcome = await deps.findLogo(digest, call.timeLeftMs());
        if (outcome.kind === 'found') return cacheLogo(digest, outcome.logo);
        return failed(outcome.kind === 'unknown' ? { kind: 'not_found' } : storageFailure(outcome.kind));
      });
      if (!found.ok) return sendFailure(reply, found.failure, deps);
      if (found.value.type !== type) return sendFailure(reply, { kind: 'not_found' }, deps);
      call.succeed('ok');
      return reply.headers(headers).type(`image/${type}`).send(Buffer.from(found.value.image));
    },
  });
}
