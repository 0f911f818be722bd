import type { BaseUrl } from '@gateway/domain/payment-link';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { openApi } from '../pages/openapi.ts';
import { contractFile } from '../pages/recipes.ts';
import { errorsReferencePage, landingPage, referencePage } from '../pages/reference-page.ts';
import { contentSecurityPolicy, referenceStyle } from '../pages/styles.ts';

const headers = {
  // Changes with every release: cached for a moment only.
  'cache-control': 'max-age=60',
  'content-security-policy': contentSecurityPolicy(referenceStyle),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/**
 * The landing page, `GET /openapi.json`, the reference made from it at `/docs`, `/docs/errors`, to which the `type` of every
 * problem document leads, and the gRPC contract. None loads anything from elsewhere.
 */
export function referenceRoutes(app: FastifyInstance, deps: { readonly baseUrl: () => BaseUrl }): void {
  const serve = (path: string, mediaType: string, make: (baseUrl: BaseUrl) => string | Promise<string>) => {
    // The base URL is known once the listener has its port, so each text is rendered at its first request.
    let text: string | undefined;
    app.get(path, { config: { operation: 'Reference' } }, async (request, reply): Promise<FastifyReply> => {
      text ??= await make(deps.baseUrl());
      request.call.succeed('ok');
      return reply.headers({ ...headers, 'content-type': mediaType }).send(text);
    });
  };
  const html = 'text/html; charset=utf-8';
  serve('/', html, landingPage);
  serve('/openapi.json', 'application/json', (baseUrl) => `${JSON.stringify(openApi(baseUrl), null, 2)}\n`);
  serve('/docs', html, (baseUrl) => referencePage(openApi(baseUrl), baseUrl));
  serve('/docs/errors', html, errorsReferencePage);
  for (const name of ['order_service.proto', 'checkout_service.proto'] as const) {
    serve(`/docs/${name}`, 'text/plain; charset=utf-8', () => contractFile(name));
  }
}
