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
  const serve = (path: string, type: string, read: () => Buffer | string | undefined) =>
    app.get(path, { config }, async ({ call }, reply) => {
      const content = read();
      if (content === undefined) return sendFailure(reply, { kind: 'not_found' }, deps);
      call.succeed('ok');
      return reply.headers(cached).type(type).send(content);
    });
  serve('/favicon.ico', 'image/x-icon', () => icon);
  serve('/robots.txt', 'text/plain; charset=utf-8', () => robots);
  serve('/.well-known/security.txt', 'text/plain; charset=utf-8', () => {
    if (deps.securityContact === undefined) return undefined;
    const expires = new Date(deps.now() + securityTextDays * dayMs).toISOString();
    return `Contact: ${deps.securityContact}\nExpires: ${expires}\nPreferred-Languages: en\n`;
  });
}
