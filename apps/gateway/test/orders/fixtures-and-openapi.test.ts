import { type Credentials, liveSecretsMax } from '@order-gateway/domain/accounts';
import { endpointsMax } from '@order-gateway/domain/webhooks';
import { carrierOf, type FixtureCall, loadFixtures, operations } from '@order-gateway/fixtures';
import { isCarried, type Merchants, sendFixture, waits } from '@order-gateway/fixtures/replay';
import { openClients } from '@order-gateway/fixtures/wire';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { exampleOrder } from '../../src/reference/example-order.ts';
import { openApi } from '../../src/reference/openapi.ts';
import { useGateway } from '../helpers/running-gateway.ts';

// Compares the fixtures, which state what the gateway accepts and returns, with the OpenAPI document, which states it for
// tools.

const { fixtures, validOrder } = await loadFixtures();

const document = openApi('https://pay.example.com');
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(document, 'openapi');
ajv.addSchema(closed(document), 'closed');

/** A document in which no object has a member that its schema does not name. */
function closed<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value), (_, part) =>
    part?.type === 'object' && part.properties ? { additionalProperties: false, ...part } : part,
  );
}

const gateway = useGateway({ webhookAddresses: 'public' });
let merchants: Merchants;
let clients: ReturnType<typeof openClients>;
beforeAll(async () => {
  const strict = await gateway.accounts.create('Strict Shop');
  await gateway.accounts.setChecksumMode(strict.clientId, 'required');
  const second = await gateway.accounts.create('Second Shop');
  const test = await gateway.accounts.create('Test Shop', 'test');
  const expiring = await gateway.accounts.create('Expiring Shop');
  await gateway.accounts.setDefaultLifetime(expiring.clientId, 60);
  const second_checkout = await gateway.accounts.create('Second Checkout', 'checkout');
  const managed = await gateway.accounts.create('Managed Shop');
  const notified = await gateway.accounts.create('Notified Shop');
  const full = await gateway.accounts.create('Full Shop');
  await fill(full);
  const checkouts = { checkout: gateway.checkout.credentials, second_checkout };
  merchants = { first: gateway.credentials, second, strict, test, expiring, managed, notified, full, ...checkouts };
  clients = openClients({ httpUrl: gateway.url, grpcAddress: new URL(gateway.grpcUrl).host });
  return () => {
    for (const client of Object.values(clients)) client.close();
  };
});

/** Adds the maximum number of endpoints and secrets. */
async function fill({ clientId }: Credentials): Promise<void> {
  const endpoint = { url: 'https://shop.invalid', signingSecret: new Uint8Array(61), disabledAt: new Date() };
  const endpoints = openWebhookEndpoints({ url: gateway.databaseUrl });
  const merchant = await endpoints.find(clientId);
  for (let count = 0; merchant !== undefined && count < endpointsMax; count += 1)
    await endpoints.create(merchant.merchantId, endpoint);
  await endpoints.close();
  for (let count = 1; count < liveSecretsMax; count += 1) await gateway.accounts.addSecret(clientId, null);
}

const compiled = new Map<string, ValidateFunction>();

function validator(name: 'openapi' | 'closed', ...pointer: string[]): ValidateFunction {
  const places = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).map(encodeURIComponent);
  const $ref = `${name}#/${places.join('/')}`;
  const validate = compiled.get($ref) ?? ajv.compile({ $ref });
  compiled.set($ref, validate);
  return validate;
}

/** The document's schema for a response of an operation; for any other path or method, that of a problem. */
function answerValidator({ operation, ...call }: FixtureCall, status: number, mediaType: string): ValidateFunction {
  const isOther = call.method !== undefined || (call.path !== undefined && !call.path.includes('?'));
  const { path, verb } = operations[operation].json ?? {};
  if (isOther || path === undefined || verb === undefined)
    return validator('closed', 'components', 'schemas', 'Problem');
  return validator(
    'closed',
    'paths',
    path,
    verb.toLowerCase(),
    'responses',
    String(status),
    'content',
    mediaType,
    'schema',
  );
}

const isOrder = validator('openapi', 'components', 'schemas', 'CreateOrderRequest');

/**
 * The rules that a schema can't express: decimals, what only a URL parser finds, how far ahead a time is, the size of
 * metadata, unknown members, the characters of a phone number beyond ASCII, invisible ones above U+FFFF, lone surrogates, and a merchant's own checksum mode.
 */
function isBeyondSchema(call: FixtureCall, sent: unknown): boolean {
  const { errors } = call.expect;
  const isBeyond = ([field, code]: (typeof errors)[number]) =>
    code === 'too_precise' ||
    code === 'bad_format' ||
    code === 'unknown_field' ||
    // Ignored without `Prefer: handling=strict`.
    field === 'customer_locale' ||
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

/** The body as read by a tool that validates it. */
function jsonOf(bytes: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

describe('every fixture over JSON', () => {
  // Fixtures that wait for the expiry of an order have no new responses.
  const said = fixtures.filter((fixture) => isCarried(fixture, 'json') && !waits(fixture));

  test('there are some', () => {
    expect(said.length).toBeGreaterThan(100);
  });

  const returned = new Set<string>();

  test.each(said.map((fixture) => [fixture.file, fixture] as const))('%s conforms', async (file, fixture) => {
    const target = { clients, merchants, orderId: `conforms-${file}.`, validOrder };
    for await (const { call, outgoing, response: answer } of sendFixture(fixture, 'json', target)) {
      if (carrierOf(call.operation, call.via ?? 'json') !== 'json') continue;
      if (answer.kind !== 'http') throw new Error('there was no answer');
      const mediaType = answer.headers['content-type']?.split(';')[0] ?? '';
      const conforms = answerValidator(call, answer.status, mediaType);
      expect(conforms(answer.body), ajv.errorsText(conforms.errors)).toBe(true);
      if (call.operation === 'GetOrder') for (const name of Object.keys(Object(answer.body))) returned.add(name);
      if (call.operation !== 'CreateOrder') continue;
      const sent = jsonOf(outgoing.bytes);
      if (answer.status < 300) expect(isOrder(sent), ajv.errorsText(isOrder.errors)).toBe(true);
      if (call.expect.outcome === 'invalid_order' && sent !== undefined && !isBeyondSchema(call, sent)) {
        expect(isOrder(sent), `the schema takes what is rejected: ${JSON.stringify(sent)}`).toBe(false);
      }
    }
  });

  test('together return every member of an order', () => {
    expect([...returned]).toEqual(
      expect.arrayContaining(Object.keys(document.components.schemas.Order?.properties ?? {})),
    );
  });
});

test('the order that the reference shows is the fixture of the API’s example', () => {
  const fixture = fixtures.find(({ file }) => file === 'interface-example-in-full');
  const order = fixture?.calls[0]?.request;
  if (order === undefined) throw new Error('the fixture has no order');
  const { order_id, order_amount, ...fields } = exampleOrder;
  expect(order).toMatchObject(fields);
  expect(Number(Object(order.order_amount).text ?? order.order_amount)).toBe(order_amount);
  expect(order_id).not.toBe('');
});
