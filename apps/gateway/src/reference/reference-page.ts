import { type BaseUrl, pathPrefixOf } from '@order-gateway/domain/links/payment-link';
import { fastify } from 'fastify';
import { html } from 'hono/html';
import { htmlPage } from '../payment-page/html-page.ts';
import { guideStyle } from '../payment-page/styles.ts';
import { contents } from './guides.ts';

/** Scalar's settings for this page. It calls only the gateway and loads nothing from elsewhere. */
const settings = {
  ...{ telemetry: false, withDefaultFonts: false, proxyUrl: '' },
  ...{ hideClientButton: true, showDeveloperTools: 'never', agent: { disabled: true }, mcp: { disabled: true } },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  persistAuth: false,
};

/** The reference made from the OpenAPI document by Scalar, whose script is {@link referenceScript}. */
export async function referencePage(baseUrl: BaseUrl): Promise<string> {
  // The browser may use another name for the gateway than the base URL.
  const root = pathPrefixOf(baseUrl);
  const configuration = JSON.stringify({ ...settings, url: `${root}/openapi.json` });
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>API reference | Order gateway</title>
<style>
body { margin: 0; }
.guides { display: flex; gap: 1rem; padding: 0.75rem 1rem; font: 0.9375rem system-ui, sans-serif; }
noscript { display: block; max-width: 40rem; margin: auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; }
</style>
</head>
<body>
<nav class="guides" aria-label="Documentation"><a href="${baseUrl}/">Guides</a> <a href="${baseUrl}/docs/errors">Errors</a> <a href="${baseUrl}/openapi.json">OpenAPI</a></nav>
<noscript><h1>Order gateway</h1><p>The API reference needs JavaScript. These pages do not:</p>${contents(baseUrl)}</noscript>
<script id="api-reference" type="application/json" data-configuration="${configuration}"></script>
<script src="${root}/docs/reference.js"></script>
</body>
</html>
`;
  return page.toString();
}

/** Scalar's script for browsers, from its plugin for Fastify. It is loaded at the first request, because it takes some MiB. */
export async function referenceScript(): Promise<string> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const app = fastify();
  await app.register(scalar, { routePrefix: '/', configuration: { url: '/openapi.json' } });
  const { body } = await app.inject('/js/scalar.js');
  await app.close();
  return body;
}

/** The page at the base URL: what this server is, and where its documentation is. */
export function landingPage(baseUrl: string): Promise<string> {
  const body = html`<h1>Order gateway</h1>
<p>This server creates payment orders for merchants’ backends, returns a payment link for each, and reports when it is paid.</p>
${contents(baseUrl)}
<p>If a shop sent you here to pay, open the payment link that it gave you.</p>`;
  return htmlPage({ language: 'en', title: 'Order gateway', styles: [guideStyle], body });
}
