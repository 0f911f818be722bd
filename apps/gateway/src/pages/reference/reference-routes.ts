import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Credentials } from '@order-gateway/domain/accounts';
import { eventTypes } from '@order-gateway/domain/events';
import type { BaseUrl } from '@order-gateway/domain/links';
import { contentSecurityPolicy, guideStyle, hashSource, siteStyle } from '@order-gateway/pages/styles';
import { isLoopbackAddress, isLoopbackUrl } from '@order-gateway/runtime/ip-address';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { packTar } from 'modern-tar/fs';
import { admitUnauthenticated } from '../../http/admit-unauthenticated.ts';
import { type HttpDeps, sendFailure } from '../../http/requests.ts';
import { eventSchemaPath, eventSchemas } from './event-schemas.ts';
import { examples, type Guide, guidePage, guides } from './guides.ts';
import { openApi } from './openapi.ts';
import { publicFile } from './public-files.ts';
import { landingPage, referencePage, referenceScript } from './reference-page.ts';

const headers = {
  // The files change with every release, so they are cached only briefly.
  'cache-control': 'max-age=60',
  'content-security-policy': contentSecurityPolicy({ styles: [siteStyle, guideStyle].map(hashSource) }),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Scalar needs inline styles, but neither inline scripts nor `eval`. It may call only this gateway. */
const referencePolicy =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const html = 'text/html; charset=utf-8';
const protoFolder = fileURLToPath(new URL('../../../../../proto', import.meta.url));

export interface ReferenceRoutesDeps extends HttpDeps {
  /** The credentials that the reference shows on this machine; absent: none. */
  readonly demo: Credentials | undefined;
}

/**
 * Adds the landing page, `GET /openapi.json`, the reference at `/docs` (generated from that file), the guides and the
 * example programs below `/docs`, the gRPC contract as an archive, and the JSON Schema of each event. The `type` of
 * every problem document links to `/docs/errors`. No page loads anything from another site.
 */
export function referenceRoutes(app: FastifyInstance, deps: ReferenceRoutesDeps): void {
  const { baseUrl, demo } = deps;
  admitUnauthenticated(app, deps, sendFailure);
  const config = { operation: 'Reference' };
  // The base URL is known only once the port is bound, so each file is created at its first request.
  const serve = (path: string, mediaType: string, create: () => string | Promise<string | Buffer>) =>
    app.get(path, { config }, publicFile({ ...headers, 'content-type': mediaType }, create));
  serve('/', html, () => landingPage(baseUrl()));
  serve('/openapi.json', 'application/json', () => `${JSON.stringify(openApi(baseUrl()), null, 2)}\n`);
  for (const name of Object.keys(guides) as Guide[]) serve(`/docs/${name}`, html, () => guidePage(name, baseUrl()));
  for (const file of readdirSync(examples).filter((name) => !name.endsWith('.md')))
    serve(`/docs/examples/${file}`, 'text/plain; charset=utf-8', () => readFile(new URL(file, examples)));
  serve('/docs/proto.tar', 'application/x-tar', () =>
    buffer(packTar([{ type: 'directory', source: protoFolder, target: 'proto' }])),
  );
  for (const type of eventTypes) {
    const create = () => `${JSON.stringify(eventSchemas(baseUrl())[type], null, 2)}\n`;
    serve(eventSchemaPath(type), 'application/schema+json', create);
  }
  serve('/docs/reference.js', 'text/javascript; charset=utf-8', referenceScript);
  const pageHeaders = { ...headers, 'content-security-policy': referencePolicy, 'content-type': html };
  const send = publicFile(pageHeaders, () => referencePage(baseUrl()));
  app.get('/docs', { config }, async (request, reply) => {
    if (demo === undefined || !isOnThisMachine(request, baseUrl())) return send(request, reply);
    request.call.succeed('ok');
    // This response contains a secret, so it must not be stored.
    reply.headers({ ...pageHeaders, 'cache-control': 'no-store' });
    return reply.send(await referencePage(baseUrl(), demo));
  });
}

/**
 * Whether a browser on this machine opened the page at the gateway's own address, so that the demo merchant's
 * credentials may be shown. A different Host header means that another site uses a name that resolves to this machine
 * (DNS rebinding).
 */
function isOnThisMachine({ raw, headers }: FastifyRequest, baseUrl: BaseUrl): boolean {
  const url = new URL(baseUrl);
  return isLoopbackUrl(url) && headers.host === url.host && isLoopbackAddress(raw.socket.remoteAddress ?? '');
}
