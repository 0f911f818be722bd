import { createJsonClient } from '@gateway/fixtures/client';
import { fillCall, type Merchants } from '@gateway/fixtures/fill-call';
import type { FixtureCall } from '@gateway/fixtures/fixture';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';
import { createMerchant, openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleOrder } from '../src/pages/example-order.ts';
import { openApi } from '../src/pages/openapi.ts';
import { type RunningGateway, runGateway } from './running-gateway.ts';

// The fixtures say what the gateway takes and answers, the OpenAPI document says it to tools: here each is held to the other.

const { fixtures, validOrder } = await loadFixtures();

const document = openApi('https://pay.example.com');
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(document, 'openapi');

let gateway: RunningGateway;
let merchants: Merchants;
beforeAll(async () => {
  gateway = await runGateway();
  const strict = await createMerchant(gateway.databaseUrl, 'Strict Shop');
  const accounts = openMerchantAccounts({ url: gateway.databaseUrl });
  await accounts.setChecksumMode(strict.clientId, 'required');
  await accounts.close();
  const second = await createMerchant(gateway.databaseUrl, 'Second Shop');
  merchants = { first: gateway.credentials, second, strict };
});
afterAll(() => gateway?.close());

function validator(...pointer: string[]): ValidateFunction {
  const places = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).map(encodeURIComponent);
  return ajv.compile({ $ref: `openapi#/${places.join('/')}` });
}

/** What the document says about an answer of `POST /order`; of anything else, that a rejected is a problem. */
function answerValidator(call: FixtureCall, status: number, mediaType: string): ValidateFunction {
  if (call.method !== 'POST' || (call.path ?? '/order') !== '/order')
    return validator('components', 'schemas', 'Problem');
  return validator('paths', '/order', 'post', 'responses', String(status), 'content', mediaType, 'schema');
}

const isOrder = validator('components', 'schemas', 'Order');

/** What a schema can't say: decimals, what only a URL parser finds, lone surrogates, and a merchant's own checksum mode. */
function isBeyondSchema(call: FixtureCall, sent: unknown): boolean {
  const codes = call.expect.errors.map(([, code]) => code);
  if (codes.every((code) => code === 'too_precise' || code === 'bad_format')) return true;
  return call.merchant === 'strict' || !JSON.stringify(sent).isWellFormed() || /\\ud[89a-f]/.test(JSON.stringify(sent));
}

/** The body as a tool that holds it to the document reads it. */
function jsonOf(bytes: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

describe('every fixture over JSON', () => {
  const said = fixtures.filter(({ calls }) =>
    calls.some(({ protocols, via }) => protocols.includes('json') && via === undefined),
  );

  test('there are some', () => {
    expect(said.length).toBeGreaterThan(100);
  });

  test.each(said.map((fixture) => [fixture.file, fixture] as const))('%s conforms', async (file, fixture) => {
    const client = createJsonClient(gateway.url);
    try {
      for (const call of fixture.calls) {
        if (!call.protocols.includes('json') || (call.via !== undefined && call.via !== 'json')) continue;
        const { outgoing } = fillCall(call, { merchants, orderId: `conforms-${file}`, validOrder });
        const sent = jsonOf(outgoing.bytes);
        const answer = await client.send(outgoing);
        if (answer.kind !== 'http') throw new Error('there was no answer');
        const mediaType = answer.headers['content-type']?.split(';')[0] ?? '';
        const conforms = answerValidator(call, answer.status, mediaType);
        expect(conforms(answer.body), ajv.errorsText(conforms.errors)).toBe(true);
        if (answer.status < 300) expect(isOrder(sent), ajv.errorsText(isOrder.errors)).toBe(true);
        if (call.expect.outcome === 'invalid_order' && sent !== undefined && !isBeyondSchema(call, sent)) {
          expect(isOrder(sent), `the schema takes what is rejected: ${JSON.stringify(sent)}`).toBe(false);
        }
      }
    } finally {
      client.close();
    }
  });
});

test('the order that the reference shows is the fixture of the interface’s example', () => {
  const fixture = fixtures.find(({ file }) => file === 'interface-example-in-full');
  const order = fixture?.calls[0]?.order;
  if (order === undefined) throw new Error('the fixture has no order');
  const { order_id, order_amount, ...fields } = exampleOrder;
  expect(order).toMatchObject(fields);
  expect(Number(Object(order.order_amount).text ?? order.order_amount)).toBe(order_amount);
  expect(order_id).not.toBe('');
});
