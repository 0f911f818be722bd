import type { BaseUrl } from '@gateway/domain/payment-link';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { landingPage } from '../pages/landing-page.ts';
import { openApi } from '../pages/openapi.ts';
import { contractFile } from '../pages/recipes.ts';
import { errorsReferencePage, referencePage } from '../pages/reference-page.ts';
import { referenceStyle } from '../pages/styles.ts';
import { contentSecurityPolicy } from './content-security-policy.ts';

const headers = {
  // Made anew with every release: held for a moment only.
  'cache-control': 'max-age=60',
  'content-security-policy': contentSecurityPolicy(referenceStyle),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/**
 * `GET /openapi.json`, the reference made from it at `/docs`, and `/docs/errors`, to which the `type` of every problem document
 * leads. All work without any other network.
 */
export function referenceRoutes(app: FastifyInstance, deps: { readonly baseUrl: () => BaseUrl }): void {
  const serve = (path: string, mediaType: string, made: (baseUrl: BaseUrl) => string | Promise<string>) => {
    // The base URL is known once the listener has its port, so each text is made at the first request.
    let text: string | undefined;
    app.get(path, async (request, reply): Promise<FastifyReply> => {
      text ??= await made(deps.baseUrl());
      return reply.headers({ ...headers, 'content-type': mediaType, 'x-request-id': request.id }).send(text);
    });
  };
  const html = 'text/html; charset=utf-8';
  serve('/', html, landingPage);
  serve('/openapi.json', 'application/json', (baseUrl) => `${JSON.stringify(openApi(baseUrl), null, 2)}\n`);
  serve('/docs', html, (baseUrl) => referencePage(openApi(baseUrl), baseUrl));
  serve('/docs/errors', html, errorsReferencePage);
  serve('/docs/order_service.proto', 'text/plain; charset=utf-8', contractFile);
}
