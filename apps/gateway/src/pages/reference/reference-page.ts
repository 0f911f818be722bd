import type { Credentials } from '@order-gateway/domain/accounts';
import { type BaseUrl, pathPrefixOf } from '@order-gateway/domain/links';
import { htmlPage } from '@order-gateway/pages/html-page';
import { guideStyle, siteStyle } from '@order-gateway/pages/styles';
import { fastify } from 'fastify';
import { html, raw } from 'hono/html';
import { contents, siteBar } from './guides.ts';

/** Scalar's settings for this page. The page calls only the gateway and loads nothing from elsewhere. */
const settings = {
  telemetry: false,
  withDefaultFonts: false,
  proxyUrl: '',
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  persistAuth: false,
  // These are languages of the code samples. The one client library is the SDK, which is among them.
  localization: { translations: { clientLibraries: { heading: 'Code samples' } } },
  // Keeps the order of the API contract.
  orderSchemaPropertiesBy: 'preserve',
  orderRequiredPropertiesFirst: false,
};

/** The style sheet of the reference. Scalar sets a class on the body for the mode that the reader chooses. */
const referenceStyle = `${siteStyle}
:root { --scalar-custom-header-height: 3.5rem; }
.light-mode, .dark-mode {
  --ground: var(--scalar-background-1); --ink: var(--scalar-color-1); --soft: var(--scalar-color-2); --line: var(--scalar-border-color);
}
.light-mode { --accent: #1d4ed8; --on-accent: #ffffff; }
.dark-mode { --accent: #93b8ff; --on-accent: #0a1a36; }
.site { padding-inline: 1.25rem; }
noscript { display: block; max-width: 66rem; margin: auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; }
`;

/**
 * Renders the API reference. In the browser, Scalar ({@link referenceScript}) builds it from the OpenAPI document.
 * `credentials` are filled in, so that the reader can try calls.
 */
export async function referencePage(baseUrl: BaseUrl, credentials?: Credentials): Promise<string> {
  // Relative to the host, because the browser may reach the gateway under a different host name than the base URL's.
  const root = pathPrefixOf(baseUrl);
  const { clientId, clientSecret } = credentials ?? {};
  const authentication = {
    preferredSecurityScheme: [['clientId', 'clientSecret']],
    securitySchemes: { clientId: { value: clientId }, clientSecret: { value: clientSecret } },
  };
  const configuration = JSON.stringify({ ...settings, authentication, url: `${root}/openapi.json` });
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>API reference | Order gateway</title>
<style>${raw(referenceStyle)}</style>
</head>
<body>
${siteBar(baseUrl, '/docs')}
<noscript><h1>Order gateway</h1><p>The API reference needs JavaScript. These pages do not:</p>${contents(baseUrl)}</noscript>
<script id="api-reference" type="application/json" data-configuration="${configuration}"></script>
<script src="${root}/docs/reference.js"></script>
</body>
</html>
`;
  return page.toString();
}

/**
 * Returns Scalar's script for browsers, from its plugin for Fastify. The plugin is loaded at the first request, because
 * it takes several MiB of memory.
 */
export async function referenceScript(): Promise<string> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const app = fastify();
  await app.register(scalar, { routePrefix: '/', configuration: { url: '/openapi.json' } });
  const { body } = await app.inject('/js/scalar.js');
  await app.close();
  return body;
}

/** Renders the page at the base URL, which says what this server is and where its documentation is. */
export function landingPage(baseUrl: string): Promise<string> {
  const body = html`<div class="hero">
<h1>Order gateway</h1>
<p>This server creates payment orders for merchants’ backends, returns a payment link for each, and reports when it is paid.</p>
<p class="links"><a href="${baseUrl}/docs">API reference</a><a href="${baseUrl}/docs/creating-orders">Create an order</a></p>
</div>
<h2 id="guides">Guides</h2>
${contents(baseUrl)}
<p class="hint">If a shop sent you here to pay, open the payment link that it gave you.</p>`;
  const header = siteBar(baseUrl, '/');
  return htmlPage({ language: 'en', title: 'Order gateway', styles: [siteStyle, guideStyle], header, body });
}
