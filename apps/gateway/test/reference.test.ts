import { failures } from '@gateway/domain/failure';
import { fieldErrorCodes, fieldRules } from '@gateway/domain/field-rules';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { validOrderInput } from '@gateway/domain/testing/order-fields';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleAnswer, exampleOrder } from '../src/pages/example-order.ts';
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

describe('/openapi.json', () => {
  test('is OpenAPI 3.1 without an error or a warning of the linter', async () => {
    const { text, response } = await get('/openapi.json');
    expect(response.headers.get('content-type')).toContain('application/json');
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test('is made from the rules: a field for each rule, with its limits', async () => {
    const { Order } = openApi('https://pay.example.com').components.schemas;
    expect(Object.keys(Order.properties ?? {})).toEqual(orderFieldNames);
    for (const [name, rule] of Object.entries(fieldRules)) {
      const schema = Order.properties?.[name];
      if (rule.kind === 'text') expect(schema?.maxLength, name).toBe(rule.lengthMax);
      if (rule.kind === 'choice') expect(schema?.enum, name).toEqual(rule.values);
    }
    expect(Order.properties?.order_amount).toMatchObject({ exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 });
  });

  test('tells every refusal that the JSON door can give', async () => {
    const { text } = await get('/openapi.json');
    for (const code of Object.keys(failures)) {
      if (code === 'method_not_allowed') continue;
      expect(text).toContain(`\`${code}\`: `);
    }
  });

  test('shows an order that is taken as it stands, and its answer in its form', async () => {
    const response = await postOrder(gateway, exampleOrder);
    expect(response.status).toBe(201);
    const answer = Object(await response.json());
    const shown = exampleAnswer(gateway.baseUrl);
    expect(Object.keys(answer)).toEqual(Object.keys(shown));
    expect({ ...shown, ...answer }).toEqual(answer);
    expect(answer).toMatchObject({ order_id: shown.order_id, order_status: shown.order_status });
  });
});

test('tells that a refusal of the payment page is a page too, and how long to wait where an answer tells it', () => {
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

describe('/docs', () => {
  test('explains every operation, field and limit, and loads nothing', async () => {
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
    expect(text).not.toMatch(/<script|<link|<img|\ssrc=|undefined|\[object/);
    const leadsTo = [...text.matchAll(/href="([^"#]+)/g)].map(([, address]) => address);
    expect(new Set(leadsTo)).toEqual(new Set([`${gateway.baseUrl}/openapi.json`, `${gateway.baseUrl}/docs/errors`]));
  });

  test('has a place for everything that it refers to', async () => {
    const { text } = await get('/docs');
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const wanted = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(wanted.length).toBeGreaterThan(3);
    expect(wanted.filter((id) => !ids.has(id))).toEqual([]);
  });
});

describe('/docs/errors', () => {
  test('has a place for every code, to which the type of a problem document leads', async () => {
    const { text } = await get('/docs/errors');
    for (const [code, { title, when }] of Object.entries(failures)) {
      expect(text).toContain(`id="${code}"`);
      expect(text).toContain(title);
      expect(text).toContain(when);
    }
    for (const code of fieldErrorCodes) expect(text).toContain(`<code>${code}</code>`);
    const refused = Object(await (await postOrder(gateway, validOrderInput({ order_amount: 0 }))).json());
    expect(refused.type).toBe(`${gateway.baseUrl}/docs/errors#invalid_order`);
    const problemType = new URL(refused.type);
    const { response } = await get(problemType.pathname.replace('/gateway', ''));
    expect(response.status).toBe(200);
  });
});

test.each(['/openapi.json', '/docs', '/docs/errors'])('%s is only read', async (path) => {
  const response = await fetch(`${gateway.url}${path}`, { method: 'POST' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
