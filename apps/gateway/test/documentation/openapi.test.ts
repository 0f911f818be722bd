import { type ClientOptions, createClient, GatewayError } from '@order-gateway/client';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { jsonRouteOf, methods } from '@order-gateway/contract/operations';
import { brandRules } from '@order-gateway/domain/accounts';
import { eventTypes } from '@order-gateway/domain/events';
import { fieldRules, orderFieldNames, orderStatuses } from '@order-gateway/domain/orders';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { exampleEvent, exampleOrder, exampleResponse } from '../../src/pages/reference/example-order.ts';
import { jsonErrorsOf, type Operation, openApi } from '../../src/pages/reference/openapi.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, postOrder } from '../helpers/send-order.ts';

const gateway = useGateway({ baseUrl: 'https://pay.gateway.test/gateway' });

async function get(path: string): Promise<{ response: Response; text: string }> {
  const response = await fetch(`${gateway.url}${path}`);
  expect(response.status).toBe(200);
  return { response, text: await response.text() };
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(openApi('https://pay.example.com'), 'openapi');

/** Fails unless a value conforms to a schema of the document and has only members that the schema lists. */
function expectConforms(schema: string, value: unknown): void {
  const conforms = ajv.compile({ $ref: `openapi#/components/schemas/${schema}` });
  expect(conforms(value), `${schema}: ${ajv.errorsText(conforms.errors)}`).toBe(true);
  const { properties } = new Map(Object.entries(openApi('').components.schemas)).get(schema) ?? {};
  expect(Object.keys(properties ?? {})).toEqual(expect.arrayContaining(Object.keys(Object(value))));
}

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;

describe('GET /openapi.json', () => {
  test('200: OpenAPI 3.1 for which the linter reports no error or warning', async () => {
    const { text, response } = await get('/openapi.json');
    expect(response.headers.get('content-type')).toContain('application/json');
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test('has every field with the limits of its rule', async () => {
    const { CreateOrderRequest: Order = {} } = openApi('https://pay.example.com').components.schemas;
    expect(Object.keys(Order.properties ?? {})).toEqual([...orderFieldNames, 'order_expires_at', 'metadata']);
    const optional = Object.keys(Order.properties ?? {}).filter((name) => !Order.required?.includes(name));
    const listed = new Intl.ListFormat('en-GB').format(optional);
    expect(Order.description).toContain(`All fields are required except ${listed}.`);
    for (const [name, rule] of Object.entries(fieldRules)) {
      const schema = Order.properties?.[name];
      // An invalid customer_locale is ignored.
      if (rule.kind === 'text' && name !== 'customer_locale') expect(schema?.maxLength, name).toBe(rule.lengthMax);
      if (rule.kind === 'choice') expect(schema?.enum, name).toEqual(rule.values);
    }
    expect(Order.properties?.order_amount).toMatchObject({ exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 });
  });

  test('has every text field of a brand with the limit of its rule', () => {
    const { UpdateBrandRequest: Brand = {} } = openApi('https://pay.example.com').components.schemas;
    for (const [field, { lengthMax }] of Object.entries(brandRules)) {
      expect(Brand.properties?.[field]?.maxLength, field).toBe(lengthMax);
    }
  });

  test('summarizes every operation in the imperative, and uses the term "headers", not "metadata"', () => {
    const { paths, tags } = openApi('https://pay.example.com');
    const summaries = Object.values(paths).flatMap((path) => Object.values(path).map(({ summary }) => summary));
    for (const summary of summaries) expect(summary).toMatch(/^[A-Z][a-z]*[^s] (?!.*\.$)/);
    expect(summaries).toEqual([...new Set(summaries)]);
    expect(tags.map(({ description }) => description).join()).not.toMatch(/metadata/);
  });

  test('lists the Prefer header for exactly the operations that honour it', () => {
    const paths = Object.values(openApi('https://pay.example.com').paths);
    const preferring = paths.flatMap((path) =>
      Object.values(path).filter(({ parameters }) => parameters?.some(({ name }) => name === 'prefer')),
    );
    const withBody = paths.flatMap((path) =>
      Object.values(path).filter(({ security, requestBody }) => (security ?? []).length > 0 && requestBody),
    );
    const expected = [...withBody.map(({ operationId }) => operationId), 'listEvents'];
    expect(preferring.map(({ operationId }) => operationId).toSorted()).toEqual(expected.toSorted());
  });

  test('lists every error code of the JSON API', () => {
    const listed = new Set<string>(Object.values(methods).filter(jsonRouteOf).flatMap(jsonErrorsOf));
    // Only StartPayment and RecordPayment, which are not part of the JSON API, return these codes.
    const rpcCodes = ['payment_attempt_ended', 'payment_mismatch'];
    expect(Object.keys(errorCatalogue).filter((code) => !listed.has(code))).toEqual(rpcCodes);
  });

  test('has a webhook for each event type, with an example of the right type and status', () => {
    const { webhooks } = openApi('https://pay.example.com');
    expect(Object.keys(webhooks)).toEqual(eventTypes);
    for (const type of eventTypes) {
      const example = Object(webhooks[type]?.post?.requestBody?.content['application/json']?.example);
      const ending = type.slice('order.'.length).toUpperCase();
      const status = (orderStatuses as readonly string[]).includes(ending) ? ending : 'PAID';
      expect(example).toMatchObject({ type, data: { order_status: status } });
    }
  });

  test('is served with a schema for each event type, which accepts only the example of that type', async () => {
    for (const type of eventTypes) {
      const { text, response } = await get(`/docs/events/${type}.schema.json`);
      expect(response.headers.get('content-type')).toBe('application/schema+json');
      const isValid = new Ajv2020({ strict: true, validateFormats: false }).compile(JSON.parse(text));
      const valid = eventTypes.filter((other) => isValid(exampleEvent(gateway.baseUrl, other)));
      expect([type, valid]).toEqual([type, [type]]);
    }
  });

  test('lists the error statuses that every operation, a lookup and a simulated payment can return', () => {
    const { paths } = openApi('https://pay.example.com');
    const statusesOf = (path: string, method: string) => Object.keys(Object(paths)[path][method].responses);
    for (const [path, methods] of Object.entries(paths))
      for (const method of Object.keys(methods))
        expect(statusesOf(path, method), path).toEqual(expect.arrayContaining(['405', '429', '500', '503']));
    expect(statusesOf('/order/{order_id}', 'get')).toContain('400');
    expect(statusesOf('/payment/{order_token}/simulate', 'post')).toContain('415');
  });

  test('has examples that conform to their schemas', () => {
    const { paths, webhooks } = openApi('https://pay.example.com');
    const operations: Pick<Operation, 'requestBody' | 'responses'>[] = [
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

  test('has patterns that work with and without the regular expression flag "u"', () => {
    const validators = [true, false].map((unicodeRegExp) => {
      const validator = new Ajv2020({ strict: false, validateFormats: false, unicodeRegExp });
      return validator
        .addSchema(openApi(''), 'openapi')
        .compile({ $ref: 'openapi#/components/schemas/CreateOrderRequest' });
    });
    const isValid = (overrides: object) => validators.map((validate) => validate({ ...exampleOrder, ...overrides }));
    expect(isValid({ order_note: 'Blå\tT-shirt\r\n👕' })).toEqual([true, true]);
    for (const control of ['\0', '\v', '\x1f', '\x7f', '\x85']) {
      expect(isValid({ order_note: `a${control}` }), encodeURI(control)).toEqual([false, false]);
      expect(isValid({ customer_name: `a${control}` }), encodeURI(control)).toEqual([false, false]);
    }
    expect(isValid({ customer_name: 'a\nb' })).toEqual([false, false]);
  });

  test('has an example order that POST /order accepts, and an example response with the same fields', async () => {
    const response = await postOrder(gateway, exampleOrder);
    expect(response.status).toBe(201);
    const created = Object(await response.json());
    const example = exampleResponse(gateway.baseUrl);
    expect(Object.keys(created)).toEqual(Object.keys(example));
    expect(created).toMatchObject({ order_id: example.order_id, order_status: example.order_status });
    expectConforms('Payment', (await callJson(gateway, 'GET', `/payment/${created.order_token}`)).body);
  });
});

test('the OpenAPI document lists HTML and problem documents as errors of pages, and the headers of errors', () => {
  const { paths } = openApi('https://pay.example.com');
  const pages = Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ security }) => security.length === 0);
  expect(pages).toHaveLength(3);
  for (const { responses } of pages) {
    for (const status of ['404', '500', '503', '504']) {
      expect(Object.keys(responses[status]?.content ?? {})).toEqual(['text/html', 'application/problem+json']);
    }
  }
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    const { responses, security, operationId } = operation;
    expect(Object.keys(responses['503']?.headers ?? {}), operationId).toEqual(['Retry-After']);
    if (security.length === 0) continue;
    expect(Object.keys(responses['429']?.headers ?? {}), operationId).toEqual(['Retry-After']);
    expect(Object.keys(responses['401']?.headers ?? {}), operationId).toEqual(['WWW-Authenticate']);
  }
});

test('in the OpenAPI document, only the errors of POST /order advise callers to send the order again', () => {
  const { paths } = openApi('https://pay.example.com');
  const advice = /same order_id/;
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    const isAdvised = advice.test(JSON.stringify(operation.responses));
    expect([operation.operationId, isAdvised]).toEqual([
      operation.operationId,
      operation.operationId === 'createOrder',
    ]);
  }
});

test('every operation with credentials has a working sample for the Node.js SDK', async () => {
  const operations = Object.values(openApi(gateway.url).paths).flatMap((path) => Object.values(path));
  const withCredentials = operations.filter(({ security }) => security.length > 0);
  const { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET } = gateway.credentials;
  const variables = {
    createClient: (options: ClientOptions) => createClient({ ...options, retries: 0 }),
    process: { env: { CLIENT_ID, CLIENT_SECRET } },
    console: { log: () => {} },
  };
  const codes = new Set<string>();
  for (const { operationId, 'x-codeSamples': [{ source = '' } = {}] = [] } of withCredentials) {
    expect(source).toContain(` client.${operationId.replace(/ByQuery$/, '')}(`);
    const [imported, ...lines] = source.split('\n');
    expect(imported).toBe("import { createClient } from '@order-gateway/client';");
    const run = new AsyncFunction(...Object.keys(variables), lines.join('\n'));
    await run(...Object.values(variables)).catch((error: unknown) => {
      if (!(error instanceof GatewayError)) throw error;
      codes.add(error.code);
    });
  }
  // The ids in the samples of endpoints, events and secrets do not exist. An earlier sample cancels the order that
  // others mark as paid or refund.
  expect([...codes].toSorted()).toEqual(['not_found', 'order_cancelled', 'order_not_paid']);
});
