import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { type HttpDeps, sendFailure } from './requests.ts';

const dayMs = 86_400_000;

/** How long each response with security.txt is valid. RFC 9116, 2.5.5 recommends less than a year. */
const securityTextDays = 90;

/** Allows everything. Payment pages have `noindex`, which a crawler can see only if it may read them. */
const robots = 'User-agent: *\nDisallow:\n';

export interface WellKnownDeps extends HttpDeps {
  /** Where to report a vulnerability, as a URI; absent: there is no security.txt. */
  readonly securityContact?: string | undefined;
  readonly now: () => number;
}

/** Adds the files that browsers, crawlers and security researchers look for at the root of a host. */
export function wellKnownRoutes(app: FastifyInstance, deps: WellKnownDeps): void {
  const icon = readFileSync(new URL('./favicon.ico', import.meta.url));
  const config = { operation: 'WellKnown' };
  const cached = { 'cache-control': 'max-age=86400', 'x-content-type-options': 'nosniff' };
  app.get('/favicon.ico', { config }, async ({ call }, reply) => {
    call.succeed('ok');
    return reply.headers(cached).type('image/x-icon').send(icon);
  });
  app.get('/robots.txt', { config }, async ({ call }, reply) => {
    call.succeed('ok');
    return reply.headers(cached).type('text/plain; charset=utf-8').send(robots);
  });
  app.get('/.well-known/security.txt', { config }, async ({ call }, reply) => {
    if (deps.securityContact === undefined) return sendFailure(reply, { kind: 'not_found' }, deps);
    call.succeed('ok');
    const expires = new Date(deps.now() + securityTextDays * dayMs).toISOString();
    const text = `Contact: ${deps.securityContact}\nExpires: ${expires}\nPreferred-Languages: en\n`;
    return reply.headers(cached).type('text/plain; charset=utf-8').send(text);
  });
}
