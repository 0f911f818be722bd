import { readFile } from 'node:fs/promises';
import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { fieldErrorCodes, fieldRules } from '@gateway/domain/field-rules';
import { checksumOf } from '@gateway/domain/order-checksum';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { parseOrder } from '@gateway/domain/parse-order';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleOrder, exampleResponse } from '../src/pages/example-order.ts';
import { openApi } from '../src/pages/openapi.ts';
import { postOrder, type RunningGateway, runGateway } from './running-gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway({ baseUrl: 'https://pay.gateway.test/gateway' });
});
afterAll(() => gateway?.close());

async function get(path: string): Promise<{ response: Response; text: string }> {
  const response = await fetch(`${gateway.url}${path}`, { signal: AbortSignal.timeout(30_000) });
  expect(response.status).toBe(200);
  return { response, text: await response.text() };
}

describe('GET /', () => {
  test('200: says what this is and links to the documentation, without script', async () => {
    const { text, response } = await get('/');
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link);
    expect(links).toContain(`${gateway.baseUrl}/docs`);
    for (const link of links) await get(link.replace(gateway.baseUrl, ''));
    expect(text).toContain('creates payment orders');
  });
});

describe('GET /openapi.json', () => {
  test('200: OpenAPI 3.1 without an error or a warning of the linter', async () => {
    const { text, response } = await get('/openapi.json');
    expect(response.headers.get('content-type')).toContain('application/json');
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test('has every field with the limits of its rule', async () => {
    const { Order } = openApi('https://pay.example.com').components.schemas;
    expect(Object.keys(Order.properties ?? {})).toEqual(orderFieldNames);
    for (const [name, rule] of Object.entries(fieldRules)) {
      const schema = Order.properties?.[name];
      if (rule.kind === 'text') expect(schema?.maxLength, name).toBe(rule.lengthMax);
      if (rule.kind === 'choice') expect(schema?.enum, name).toEqual(rule.values);
    }
    expect(Order.properties?.order_amount).toMatchObject({ exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 });
  });

  test('has every error code of the JSON API', async () => {
    const { text } = await get('/openapi.json');
    for (const code of Object.keys(failures)) {
      if (code === 'method_not_allowed') continue;
      expect(text).toContain(`\`${code}\`: `);
    }
  });

  test('shows an order that POST /order creates, and a response with the same fields', async () => {
    const response = await postOrder(gateway, exampleOrder);
    expect(response.status).toBe(201);
    const created = Object(await response.json());
    const shown = exampleResponse(gateway.baseUrl);
    expect(Object.keys(created)).toEqual(Object.keys(shown));
    expect(created).toMatchObject({ order_id: shown.order_id, order_status: shown.order_status });
  });
});

test('the OpenAPI document lists pages and problem documents as errors of the payment page, and Retry-After', () => {
  const { paths } = openApi('https://pay.example.com');
  const page = paths['/payment/{order_token}'].get.responses;
  for (const status of ['404', '500', '503', '504']) {
    expect(Object.keys(page[status]?.content ?? {})).toEqual(['text/html', 'application/problem+json']);
  }
  for (const { responses } of [paths['/order'].post, paths['/order/{order_id}'].get]) {
    expect(Object.keys(responses['429']?.headers ?? {})).toEqual(['Retry-After']);
    expect(Object.keys(responses['503']?.headers ?? {})).toEqual(['Retry-After']);
    expect(responses['401']?.headers).toBeUndefined();
  }
});

test('the OpenAPI document advises to send an order again only for POST /order', () => {
  const { paths } = openApi('https://pay.example.com');
  const advice = /same order_id/;
  expect(JSON.stringify(paths['/order'].post.responses)).toMatch(advice);
  for (const path of ['/order/{order_id}', '/payment/{order_token}'] as const) {
    expect(JSON.stringify(paths[path].get.responses)).not.toMatch(advice);
  }
});

describe('GET /docs', () => {
  test('200: explains every operation, field and limit, and loads nothing', async () => {
    const { text, response } = await get('/docs');
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]+';/,
    );
    for (const name of orderFieldNames) expect(text).toContain(`<code>${name}</code>`);
    for (const shown of [
      'POST /order',
      'GET /order/{order_id}',
      'GET /payment/{order_token}',
      '1 to 1000 characters',
    ]) {
      expect(text).toContain(shown);
    }
    const prose = text.replaceAll(/<pre[^>]*>.*?<\/pre>/gs, '');
    expect(prose).not.toMatch(/<script|<link|<img|\ssrc=|undefined|\[object|`/);
    const links = [...text.matchAll(/href="([^"#]+)/g)].map(([, link = '']) => link);
    expect(links.every((link) => link.startsWith(`${gateway.baseUrl}/`))).toBe(true);
    for (const link of links) await get(link.replace(gateway.baseUrl, ''));
  });

  test('has the target of every link within the page', async () => {
    const { text } = await get('/docs');
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const linked = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(linked.length).toBeGreaterThan(3);
    expect(linked.filter((id) => !ids.has(id))).toEqual([]);
  });
});

describe('GET /docs: recipes', () => {
  test('the checksum is that of the example order', async () => {
    const { text } = await get('/docs');
    const secret = /<code>(sk_\w+)<\/code>/.exec(text)?.[1] ?? '';
    const parsed = parseOrder(exampleOrder);
    if (!parsed.ok) throw new Error('the example order is invalid');
    expect(text).toContain(checksumOf(parsed.value, secret));
    expect(exampleOrder.order_checksum).not.toMatch(/[0-9a-f]{32}/);
  });

  test('the programs are those of docs/examples', async () => {
    const { text } = await get('/docs');
    for (const file of [
      'create-order.sh',
      'create-order.mjs',
      'create_order.py',
      'create-order.php',
      'grpc-client.mjs',
    ]) {
      const program = await readFile(new URL(`../../../docs/examples/${file}`, import.meta.url), 'utf8');
      expect(
        text
          .replaceAll('&amp;', '&')
          .replaceAll('&quot;', '"')
          .replaceAll('&#39;', "'")
          .replaceAll('&lt;', '<')
          .replaceAll('&gt;', '>'),
      ).toContain(program);
    }
  });
});

describe('GET /docs/errors', () => {
  test('200: has a section for every code, to which the type of a problem document links', async () => {
    const { text } = await get('/docs/errors');
    for (const [code, { title }] of Object.entries(failures)) {
      expect(text).toContain(`id="${code}"`);
      expect(text).toContain(title);
      expect(text).toContain(failureAdvice(code as FailureCode, true));
    }
    for (const code of fieldErrorCodes) expect(text).toContain(`<code>${code}</code>`);
    const problem = Object(await (await postOrder(gateway, validOrderInput({ order_amount: 0 }))).json());
    expect(problem.type).toBe(`${gateway.baseUrl}/docs/errors#invalid_order`);
    const problemType = new URL(problem.type);
    const { response } = await get(problemType.pathname.replace('/gateway', ''));
    expect(response.status).toBe(200);
  });
});

test('GET /docs/order_service.proto: 200 with the contract', async () => {
  const { text, response } = await get('/docs/order_service.proto');
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(text).toBe(await readFile(new URL('../../../proto/gateway/v1/order_service.proto', import.meta.url), 'utf8'));
});

test.each(['', '/openapi.json', '/docs', '/docs/errors'])('POST {base_url}%s: 405', async (path) => {
  const response = await fetch(`${gateway.url}${path}`, { method: 'POST' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
