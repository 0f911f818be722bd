import { html } from 'hono/html';
import { htmlPage } from './html-page.ts';
import { referenceStyle } from './styles.ts';

/** The page at the base URL itself: what this server is, and where its documentation is. */
export function landingPage(baseUrl: string): Promise<string> {
  const body = html`<h1>Order gateway</h1>
<p>This server creates payment orders for merchants’ backends, returns a payment link for each, and reports when it is paid.</p>
<ul>
<li><a href="${baseUrl}/docs">API reference</a>: how to create, list and cancel orders, with recipes for retries, events, webhooks, the checksum and gRPC</li>
<li><a href="${baseUrl}/docs/errors">Errors</a>: every error code and what to do about it</li>
<li><a href="${baseUrl}/openapi.json">OpenAPI document</a>: the same for tools</li>
</ul>
<p>If a shop sent you here to pay, open the payment link that you got from it.</p>`;
  return htmlPage({ language: 'en', title: 'Order gateway', style: referenceStyle, body });
}
