import { carrierOf, type FixtureCall, loadFixtures, operations } from '@order-gateway/fixtures';
import { differences, isCarried, type Merchants, sendFixture, waitsForTime } from '@order-gateway/fixtures/replay';
import { type CallResponse, openClients } from '@order-gateway/fixtures/wire';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { exampleOrder } from '../../../src/pages/reference/example-order.ts';
import { openApi } from '../../../src/pages/reference/openapi.ts';
import { createFixtureMerchants } from '../../helpers/fixture-merchants.ts';
import { useGateway } from '../../helpers/running-gateway.ts';

// Sends the fixtures, and compares them and the responses with the OpenAPI document.

const { fixtures, validOrder } = await loadFixtures();

const document = openApi('https://pay.example.com');
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(document, 'openapi');
ajv.addSchema(closed(document), 'closed');

/** Returns the document with schemas that allow no members except those they name. */
function closed<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value), (_, part) =>
    part?.type === 'object' && part.properties ? { additionalProperties: false, ...part } : part,
  );
}

const gateway = useGateway({ webhookAddresses: 'public' });
let merchants: Merchants;
let clients: ReturnType<typeof openClients>;
beforeAll(async () => {
  merchants = await createFixtureMerchants(gateway);
  clients = openClients({ httpUrl: gateway.url, grpcAddress: new URL(gateway.grpcUrl).host });
  return () => {
    for (const client of Object.values(clients)) client.close();
  };
});

const compiled = new Map<string, ValidateFunction>();

function validator(name: 'openapi' | 'closed', ...pointer: string[]): ValidateFunction {
  const segments = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).map(encodeURIComponent);
  const $ref = `${name}#/${segments.join('/')}`;
  const validate = compiled.get($ref) ?? ajv.compile({ $ref });
  compiled.set($ref, validate);
  return validate;
}

/**
 * Returns the validator for the response to a call: the operation's schema, or that of a problem if the call replaces
 * the operation's path or method.
 */
function responseValidator({ operation, ...call }: FixtureCall, status: number, mediaType: string): ValidateFunction {
  const hasOwnPath = call.method !== undefined || (call.path !== undefined && !call.path.includes('?'));
  const { path, verb } = operations[operation].json ?? {};
  if (hasOwnPath || path === undefined || verb === undefined)
    return validator('closed', 'components', 'schemas', 'Problem');
  const response = ['responses', String(status), 'content', mediaType, 'schema'];
  return validator('closed', 'paths', path, verb.toLowerCase(), ...response);
}

const isOrder = validator('openapi', 'components', 'schemas', 'CreateOrderRequest');

/**
 * Whether a request breaks only rules that a schema can't express. These concern decimals, formats such as that of a
 * URL, how far ahead a time is, the size of metadata, unknown members, non-ASCII characters in a phone number,
 * invisible characters above U+FFFF, lone surrogates, and the checksum mode of a merchant.
 */
function isBeyondSchema(call: FixtureCall, sent: unknown): boolean {
  const { errors } = call.expect;
  const isBeyond = ([field, code]: (typeof errors)[number]) =>
    code === 'too_precise' ||
    code === 'bad_format' ||
    code === 'unknown_field' ||
    // Ignored without `Prefer: handling=strict`, as is null in place of an optional object or time.
    field === 'customer_locale' ||
    (code === 'wrong_type' && Object(sent)[field] === null && ['metadata', 'order_expires_at'].includes(field)) ||
    (field === 'customer_phone' && code === 'bad_characters') ||
    (field === 'order_expires_at' && code === 'out_of_range') ||
    (field === 'metadata' && code === 'too_long' && Object.keys(Object(Object(sent).metadata)).length <= 20);
  if (errors.every(isBeyond)) return true;
  const text = JSON.stringify(sent);
  return (
    call.merchant === 'strict' ||
    /[\u{e0000}-\u{e0fff}]/u.test(text) ||
    !text.isWellFormed() ||
    /\\ud[89a-f]/.test(text)
  );
}

/** Returns the body as a JSON value, or `undefined` if it is not JSON. */
function jsonOf(bytes: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

describe('the fixtures over JSON', () => {
  // Fixtures that wait until an order expires show no other kinds of response.
  const jsonFixtures = fixtures.filter((fixture) => isCarried(fixture, 'json') && !waitsForTime(fixture));

  test('are more than 100', () => {
    expect(jsonFixtures.length).toBeGreaterThan(100);
  });

  const returned = new Set<string>();

  test.each(jsonFixtures.map((fixture) => [fixture.file, fixture] as const))(
    'pass and conform: %s',
    async (file, fixture) => {
      const target = { clients, merchants, orderId: `conforms-${file}.`, validOrder };
      let first: CallResponse | undefined;
      for await (const sentCall of sendFixture(fixture, 'json', target)) {
        const { call, outgoing, response } = sentCall;
        const context = { sent: sentCall.sent, first, secrets: [], baseUrl: gateway.baseUrl, nowMs: Date.now() };
        expect(differences(sentCall.expect, response, context)).toEqual([]);
        first ??= response;
        if (carrierOf(call.operation, call.via ?? 'json') !== 'json') continue;
        if (response.kind !== 'http') throw new Error('there was no response');
        const mediaType = response.headers['content-type']?.split(';')[0] ?? '';
        const conforms = responseValidator(call, response.status, mediaType);
        expect(conforms(response.body), ajv.errorsText(conforms.errors)).toBe(true);
        if (call.operation === 'GetOrder') for (const name of Object.keys(Object(response.body))) returned.add(name);
        if (call.operation !== 'CreateOrder') continue;
        const order = jsonOf(outgoing.bytes);
        if (response.status < 300) expect(isOrder(order), ajv.errorsText(isOrder.errors)).toBe(true);
        if (call.expect.outcome === 'invalid_order' && order !== undefined && !isBeyondSchema(call, order)) {
          expect(isOrder(order), `the schema accepts a rejected order: ${JSON.stringify(order)}`).toBe(false);
        }
      }
    },
  );

  test('together return every member of an order', () => {
    // Only expired orders have it, and fixtures that wait for an expiry are omitted here.
    expect([...returned, 'payable_until']).toEqual(
      expect.arrayContaining(Object.keys(document.components.schemas.Order?.properties ?? {})),
    );
  });
});

test('the example order of the reference is the one in the fixtures', () => {
  const fixture = fixtures.find(({ file }) => file === 'api-example-in-full');
  const order = fixture?.calls[0]?.request;
  if (order === undefined) throw new Error('the fixture has no order');
  const { order_id, order_amount, ...fields } = exampleOrder;
  expect(order).toMatchObject(fields);
  expect(Number(Object(order.order_amount).text ?? order.order_amount)).toBe(order_amount);
  expect(order_id).not.toBe('');
});
