import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { fieldErrorCodes, fieldRules } from '@gateway/domain/field-rules';
import { checksumOf } from '@gateway/domain/order-checksum';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { eventTypes } from '@gateway/domain/order-states';
import { parseOrder } from '@gateway/domain/parse-order';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { exampleOrder, exampleResponse } from '../src/pages/example-order.ts';
import { type Operation, openApi } from '../src/pages/openapi.ts';
import { jsonFailures, rpcFailures } from '../src/pages/operation-failures.ts';
import { useGateway } from './running-gateway.ts';
import { answerOf, callJson, postOrder, postPayment } from './send-order.ts';

const gateway = useGateway({ baseUrl: 'https://pay.gateway.test/gateway' });

async function get(path: string): Promise<{ response: Response; text: string }> {
  const response = await fetch(`${gateway.url}${path}`, { signal: AbortSignal.timeout(30_000) });
  expect(response.status).toBe(200);
  return { response, text: await response.text() };
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(openApi('https://pay.example.com'), 'openapi');

/** Checks that a value conforms to a schema of the document, which names every member of it. */
function expectConforms(schema: string, value: unknown): void {
  const conforms = ajv.compile({ $ref: `openapi#/components/schemas/${schema}` });
  expect(conforms(value), `${schema}: ${ajv.errorsText(conforms.errors)}`).toBe(true);
  const { properties } = new Map(Object.entries(openApi('').components.schemas)).get(schema) ?? {};
  expect(Object.keys(properties ?? {})).toEqual(expect.arrayContaining(Object.keys(Object(value))));
}

/** The text of a page without the escapes of HTML. */
function unescaped(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
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
    expect(Object.keys(Order.properties ?? {})).toEqual([...orderFieldNames, 'order_expires_at']);
    expect(Order.required).not.toContain('order_expires_at');
    for (const [name, rule] of Object.entries(fieldRules)) {
      const schema = Order.properties?.[name];
      if (rule.kind === 'text') expect(schema?.maxLength, name).toBe(rule.lengthMax);
      if (rule.kind === 'choice') expect(schema?.enum, name).toEqual(rule.values);
    }
    expect(Order.properties?.order_amount).toMatchObject({ exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 });
  });

  // That each has its description is shown by operation-failures.test.ts.
  test('has every error code of the JSON API', () => {
    const listed = new Set<string>(Object.values(jsonFailures).flat());
    // The rest: a wrong method has no operation, and the other two are for payments that a checkout system records.
    const rest = ['method_not_allowed', 'order_cancelled', 'payment_mismatch'];
    expect(Object.keys(failures).filter((code) => !listed.has(code))).toEqual(rest);
  });

  test('has a webhook for each type of event, with the schema of the events', () => {
    const { webhooks } = openApi('https://pay.example.com');
    expect(Object.keys(webhooks)).toEqual(eventTypes);
    for (const type of eventTypes) {
      const example = Object(webhooks[type]?.post.requestBody.content['application/json']?.example);
      expect(example).toMatchObject({ type, data: { order_status: type.slice('order.'.length).toUpperCase() } });
    }
  });

  test('has examples that conform to their schemas', () => {
    const { paths, webhooks } = openApi('https://pay.example.com');
    const operations: (Pick<Operation, 'requestBody'> & { readonly responses: Operation['responses'] })[] = [
      ...Object.values(paths).flatMap((methods) => Object.values(methods)),
      ...Object.values(webhooks).map(({ post }) => post),
    ];
    const contents = operations.flatMap(({ requestBody, responses }) =>
      [requestBody, ...Object.values(responses)].flatMap((part) => Object.values(part?.content ?? {})),
    );
    const examples = contents.filter(({ example }) => example !== undefined);
    expect(examples.length).toBeGreaterThan(8);
    for (const { schema, example } of examples) expectConforms(schema.$ref?.split('/').at(-1) ?? '', example);
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

test('the schemas of the OpenAPI document name every member of the responses', async () => {
  const created = await answerOf(await postOrder(gateway, { ...exampleOrder, order_id: 'conforms-paid' }));
  expectConforms('OrderResponse', created);
  const { order_amount, order_currency } = exampleOrder;
  await postPayment(gateway.checkout, created.order_token, { order_amount, order_currency });
  const order_expires_at = new Date(Date.now() + 3_600_000).toISOString();
  await postOrder(gateway, { ...exampleOrder, order_id: 'conforms-open', order_expires_at });
  await postOrder(gateway, { ...exampleOrder, order_id: 'conforms-cancelled', order_expires_at });
  const json = async (path: string, method: 'GET' | 'POST' = 'GET') => {
    const { status, body } = await callJson(gateway, method, path);
    expect(status, path).toBe(200);
    return body;
  };
  const cancelled = await json('/order/conforms-cancelled/cancel', 'POST');
  const records = [cancelled, await json('/order/conforms-open'), await json('/order/conforms-paid')];
  for (const record of records) expectConforms('OrderRecord', record);
  const named = Object.keys(openApi('').components.schemas.OrderRecord.properties ?? {});
  expect(new Set(records.flatMap((record) => Object.keys(record)))).toEqual(new Set(named));
  const page = await json('/orders?limit=2');
  expectConforms('OrderPage', page);
  expect(page.next_cursor).toBeTypeOf('string');
  const seen = () => json('/events');
  await expect.poll(async () => (await seen()).events.length).toBe(2);
  const events = await seen();
  expectConforms('EventPage', events);
  for (const event of events.events) expectConforms('Event', event);
  expectConforms('Payment', await json(`/payment/${created.order_token}`));
});

test('the OpenAPI document lists pages and problem documents as errors of the payment page, and Retry-After', () => {
  const { paths } = openApi('https://pay.example.com');
  for (const { responses } of [paths['/payment/{order_token}'].get, paths['/payment/{order_token}/simulate'].post]) {
    for (const status of ['404', '500', '503', '504']) {
      expect(Object.keys(responses[status]?.content ?? {})).toEqual(['text/html', 'application/problem+json']);
    }
  }
  for (const operation of Object.values(paths).flatMap((methods) => Object.values<Operation>(methods))) {
    const { responses, security, operationId } = operation;
    expect(Object.keys(responses['503']?.headers ?? {}), operationId).toEqual(['Retry-After']);
    if (security.length === 0) continue;
    expect(Object.keys(responses['429']?.headers ?? {}), operationId).toEqual(['Retry-After']);
    expect(Object.keys(responses['401']?.headers ?? {}), operationId).toEqual(['WWW-Authenticate']);
  }
});

test('the OpenAPI document advises to send an order again only for POST /order', () => {
  const { paths } = openApi('https://pay.example.com');
  const advice = /same order_id/;
  for (const operation of Object.values(paths).flatMap((methods) => Object.values<Operation>(methods))) {
    const isAdvised = advice.test(JSON.stringify(operation.responses));
    expect([operation.operationId, isAdvised]).toEqual([
      operation.operationId,
      operation.operationId === 'createOrder',
    ]);
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
      'POST /order/{order_id}/cancel',
      'GET /orders',
      'GET /events',
      'GET /payment/{order_token}',
      'POST /payment/{order_token}/simulate',
      ...eventTypes,
      ...Object.keys(rpcFailures).map((method) => `gateway.v1.${method}`),
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

  test('the signature is that of the example event', async () => {
    const text = unescaped((await get('/docs')).text);
    const secret = /<code>whsec_([\w+/=]+)<\/code>/.exec(text)?.[1] ?? '';
    const [, signed = '', signature] = /<pre[^>]*>(evt_.+)\n\nwebhook-signature: v1,(.+)<\/pre>/.exec(text) ?? [];
    const key = Buffer.from(secret, 'base64');
    expect(key).toHaveLength(32);
    expect(createHmac('sha256', key).update(signed).digest('base64')).toBe(signature);
    const [id, seconds, ...body] = signed.split('.');
    const event = JSON.parse(body.join('.'));
    expectConforms('Event', event);
    expect([event.id, Math.floor(Date.parse(event.timestamp) / 1_000)]).toEqual([id, Number(seconds)]);
  });

  test('the programs are those of docs/examples', async () => {
    const text = unescaped((await get('/docs')).text);
    for (const file of [
      ...['create-order.sh', 'create-order.mjs', 'create_order.py', 'create-order.php', 'grpc-client.mjs'],
      ...['verify-signatures.sh', 'verify-signatures.mjs', 'verify_signatures.py', 'verify-signatures.php'],
    ]) {
      const program = await readFile(new URL(`../../../docs/examples/${file}`, import.meta.url), 'utf8');
      expect(text).toContain(program);
    }
  });
});

describe('GET /docs/errors', () => {
  test('200: has a section for every code, to which the type of a problem document links', async () => {
    const text = unescaped((await get('/docs/errors')).text);
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

test.each(['order_service.proto', 'checkout_service.proto'])('GET /docs/%s: 200 with the contract', async (file) => {
  const { text, response } = await get(`/docs/${file}`);
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(text).toBe(await readFile(new URL(`../../../proto/gateway/v1/${file}`, import.meta.url), 'utf8'));
});

test.each(['', '/openapi.json', '/docs', '/docs/errors'])('POST {base_url}%s: 405', async (path) => {
  const response = await fetch(`${gateway.url}${path}`, { method: 'POST' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
