import { type Client, createClient } from '@connectrpc/connect';
import { compressionGzip, createGrpcTransport } from '@connectrpc/connect-node';
import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { listedCurrencyCodes, orderCurrencyCodes } from '@gateway/domain/currency';
import { type PaymentInput, paymentFieldNames } from '@gateway/domain/parse-payment';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { beforeAll, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from '../helpers/rpc-clients.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { createOrder, postJson, postPayment } from '../helpers/send-order.ts';

const gateway = useGateway();

/** A client for each API. Compressed gRPC calls take the path through Connect. */
const apis = () => [
  ...rpcClients(CheckoutService, gateway),
  {
    name: 'grpc through Connect',
    client: createClient(
      CheckoutService,
      createGrpcTransport({ baseUrl: gateway.grpcUrl, sendCompression: compressionGzip, compressMinBytes: 0 }),
    ),
  },
];

const amount = 10;
let valid: PaymentInput;
let payments = 0;
beforeAll(async () => {
  const { order_token } = await createOrder(gateway, 'to be paid', { order_amount: amount, order_currency: 'EUR' });
  const paid_at = new Date().toISOString();
  valid = { order_token, payment_id: 'p', paid_at, order_amount: amount, order_currency: 'EUR' };
});

const outcomeOf = async (client: Client<typeof CheckoutService>, changes: Record<string, unknown>) => {
  // Each is another payment, as a refused one is stored.
  payments += 1;
  const sent = { ...valid, payment_id: `p-${payments}`, ...changes };
  const { order_token, payment_id, paid_at, order_amount, order_currency } = sent;
  const message = {
    ...{ orderToken: order_token, paymentId: payment_id, paidAt: paid_at },
    ...{ orderAmount: order_amount, orderCurrency: order_currency },
  };
  return (await rpcErrorOf(client.recordPayment(message as never, { headers: gateway.checkout.headers }))).reason;
};

const texts = [
  '',
  ' ',
  '5',
  'null',
  'x'.repeat(129),
  'x'.repeat(10_000),
  '\u0000',
  '\u202e',
  '10.00',
  'EUR ',
  'eur',
  'EURO',
];

test.each(['grpc', 'grpc-web', 'connect in JSON', 'connect in binary', 'grpc through Connect'])(
  'RecordPayment over %s: only a valid amount or currency that differs is a mismatch',
  async (name) => {
    const client = apis().find((api) => api.name === name)?.client;
    if (client === undefined) throw new Error(`there is no client for ${name}`);
    const expectOutcome = async (changes: Record<string, unknown>, expected: string | undefined) =>
      expect([changes, await outcomeOf(client, changes)]).toEqual([changes, expected]);
    for (const code of [...listedCurrencyCodes, ...texts]) {
      if (code === 'EUR') continue;
      const isValid = orderCurrencyCodes.includes(code);
      await expectOutcome({ order_currency: code }, isValid ? 'payment_mismatch' : 'invalid_request');
    }
    for (const other of [9.99, 10.01, 0.01, 1, 100, 9_999_999_999_999.99]) {
      await expectOutcome({ order_amount: other }, 'payment_mismatch');
    }
    const noAmounts = [0, -0, -10, 10.001, 9.999, 0.001, 5e-324, 1e13, 1e300, undefined];
    for (const other of [...noAmounts, ...(name === 'connect in JSON' ? [] : [Number.NaN, Infinity, -Infinity])]) {
      await expectOutcome({ order_amount: other }, 'invalid_request');
    }
    for (const text of texts.filter((text) => text !== '5')) {
      await expectOutcome({ paid_at: text }, 'invalid_request');
      await expectOutcome({ order_token: text }, text === '' ? 'invalid_request' : 'not_found');
    }
    for (const text of ['', ' ', 'x'.repeat(129), '\u0000']) {
      await expectOutcome({ payment_id: text }, 'invalid_request');
    }
    for (const year of ['0000', '1969', '1999', '2999', '9999']) {
      await expectOutcome({ paid_at: `${year}-01-01T00:00:00Z` }, 'invalid_request');
    }
    expect(await runQuery(gateway.databaseUrl, 'select order_status from orders')).toEqual([
      { order_status: 'UN_PAID' },
    ]);
  },
);

test('RecordPayment over Connect in JSON: a value of another type is never a mismatch', async () => {
  const { order_token } = await createOrder(gateway, 'paid', { order_amount: amount });
  expect((await postPayment(gateway.checkout, order_token, { order_amount: amount })).status).toBe(200);
  const values = [
    'true',
    'false',
    '5',
    '-1.5',
    '[]',
    '["10"]',
    '{}',
    '{"text":"10"}',
    '"10"',
    '"10.00"',
    '"NaN"',
    '""',
    'null',
  ];
  for (const field of paymentFieldNames) {
    for (const value of values) {
      const isId = field === 'payment_id' || field === 'attempt_id';
      const payment = { ...valid, payment_id: `${field} ${value}`, ...(isId && { order_token }), [field]: '$' };
      const text = JSON.stringify(payment).replace('"$"', value);
      const response = await postJson(gateway.checkout, '/gateway.v1.CheckoutService/RecordPayment', text);
      const { details, ...paid } = Object(await response.json());
      const isNumber = /^\d+$/.test(value);
      const isText = /^"[^"]+"$/.test(value);
      const expected =
        field === 'order_amount' && isNumber
          ? 'PAYMENT_MISMATCH'
          : field === 'order_token' && isText
            ? 'NOT_FOUND'
            : (isId && isText) || (field === 'attempt_id' && /^(null|"")$/.test(value))
              ? 'ORDER_ALREADY_PAID'
              : 'INVALID_REQUEST';
      expect([field, value, details?.[0]?.debug?.reason ?? paid]).toEqual([field, value, expected]);
    }
  }
});
