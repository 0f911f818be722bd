import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { fieldErrorCodes } from '@order-gateway/domain/requests';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { describe, expect, test } from 'vitest';
import { guides } from '../../src/pages/reference/guides.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { postOrder } from '../helpers/send-order.ts';

const gateway = useGateway({ baseUrl: 'https://pay.gateway.test/gateway' });

async function get(path: string): Promise<{ response: Response; text: string }> {
  const response = await fetch(`${gateway.url}${path}`);
  expect(response.status).toBe(200);
  return { response, text: await response.text() };
}

function linksIn(text: string): string[] {
  return [...text.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link);
}

describe('GET /', () => {
  test('200: describes the server and links to the documentation', async () => {
    const { text, response } = await get('/');
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    const links = linksIn(text);
    expect(links).toContain(`${gateway.baseUrl}/docs`);
    for (const link of links) await get(link.replace(gateway.baseUrl, ''));
    expect(text).toContain('creates payment orders');
  });
});

describe('GET /docs', () => {
  test('200: the Content-Security-Policy allows scripts only from the gateway, and links work without JavaScript', async () => {
    const { text, response } = await get('/docs');
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const [, withoutScript = ''] = /<noscript>(.+?)<\/noscript>/s.exec(text) ?? [];
    expect(linksIn(withoutScript)).toContain(`${gateway.baseUrl}/docs/errors`);
    for (const link of linksIn(text)) await get(link.replace(gateway.baseUrl, ''));
  });

  test('loads a single script, from the gateway', async () => {
    const { text } = await get('/docs');
    expect([...text.matchAll(/src="([^"]+)"/g)].map(([, src]) => src)).toEqual(['/gateway/docs/reference.js']);
    const { response } = await get('/docs/reference.js');
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  });
});

describe('GET /docs of a gateway with a demo merchant', () => {
  const fetchDocs = async (url: string, host: string) => {
    const { hostname, port } = new URL(url);
    const request = httpRequest({ host: hostname, port, path: '/docs', headers: { host } }).end();
    const [response] = await once(request, 'response');
    return { cacheControl: response.headers['cache-control'], page: await text(response) };
  };

  test("contains the demo merchant's credentials at the local address, and is not cached", async () => {
    const { demo, url, baseUrl } = await runGateway({ hasDemo: true });
    const { cacheControl, page } = await fetchDocs(url, new URL(baseUrl).host);
    expect(cacheControl).toBe('no-store');
    expect([demo?.clientId, demo?.clientSecret].map((value) => page.includes(`&quot;${value}&quot;`))).toEqual([
      true,
      true,
    ]);
    const rebound = await fetchDocs(url, 'rebound.example.com');
    expect([rebound.cacheControl, rebound.page.includes(demo?.clientSecret ?? '')]).toEqual(['max-age=60', false]);
  });

  test('contains no credentials at a public address, or without a demo merchant', async () => {
    for (const options of [{ hasDemo: true, baseUrl: 'https://pay.gateway.test' }, {}]) {
      const { demo, url, baseUrl } = await runGateway(options);
      const { page } = await fetchDocs(url, new URL(baseUrl).host);
      expect(page).not.toContain(demo?.clientSecret ?? 'sk_');
    }
  });
});

describe.each(Object.keys(guides))('GET /docs/%s', (name) => {
  test('200: the guide, with links to existing pages and headings of the gateway', async () => {
    const { text, response } = await get(`/docs/${name}`);
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(text).toMatch(/<h1 id="[a-z-]+">/);
    expect(text).not.toMatch(/<script|<link|<img|\ssrc=|undefined|\[object|\.md"|stateDiagram/);
    for (const link of linksIn(text)) {
      if (link.startsWith('https://') && !link.startsWith(gateway.baseUrl)) continue;
      const [path = '', hash] = link.replace(gateway.baseUrl, '').split('#');
      const target = path === '' ? text : (await get(path)).text;
      if (hash !== undefined) expect(target, link).toContain(`id="${hash}"`);
    }
  });
});

test('GET /docs/errors has an anchor for every code, and the `type` of problem documents links to it', async () => {
  const { text } = await get('/docs/errors');
  for (const code of Object.keys(errorCatalogue)) expect(text).toContain(`id="${code}"`);
  for (const code of fieldErrorCodes) expect(text).toContain(`<code>${code}</code>`);
  const problem = Object(await (await postOrder(gateway, validOrderInput({ order_amount: 0 }))).json());
  expect(problem.type).toBe(`${gateway.baseUrl}/docs/errors#invalid_order`);
});

test('GET /docs/operations gets 404, because pages for operators are not served', async () => {
  expect((await fetch(`${gateway.url}/docs/operations`)).status).toBe(404);
});

test('the guides link to the SDK and to the example programs, which the gateway serves', async () => {
  const { text: events } = await get('/docs/events');
  expect(linksIn(events)).toEqual(
    expect.arrayContaining([`${gateway.baseUrl}/docs/node-sdk#webhooks`, `${gateway.baseUrl}/docs/examples`]),
  );
  const { text: examples } = await get('/docs/examples');
  const folder = new URL('../../../../docs/examples/', import.meta.url);
  const programs = (await readdir(folder)).filter((name) => !name.endsWith('.md'));
  for (const name of programs) {
    expect(linksIn(examples)).toContain(`${gateway.baseUrl}/docs/examples/${name}`);
    const { response, text } = await get(`/docs/examples/${name}`);
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(text).toBe(await readFile(new URL(name, folder), 'utf8'));
  }
});

test.each(['', '/openapi.json', '/docs', '/docs/errors'])('POST {base_url}%s: 405', async (path) => {
  const response = await fetch(`${gateway.url}${path}`, { method: 'POST' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
