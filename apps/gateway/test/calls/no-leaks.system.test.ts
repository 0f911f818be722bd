import { ConnectError } from '@connectrpc/connect';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { orderFieldNames } from '@order-gateway/domain/orders';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endProcesses, type GatewayWithMerchant, startOnNewDatabase } from '../helpers/gateway-process.ts';
import { rpcClients, rpcNames } from '../helpers/grpc/rpc-clients.ts';
import { credentialHeaders, orderMessage, postOrder } from '../helpers/send-order.ts';

// Texts that must not leak: a card number, a secret, and an e-mail address.
const sensitiveTexts = ['4111111111111111', `sk_${'Q7'.repeat(21)}z`, 'private.person@example.com'];

const textFields = orderFieldNames.filter((name) => name !== 'order_amount' && name !== 'service_type');

let gateway: GatewayWithMerchant;
beforeAll(async () => {
  gateway = await startOnNewDatabase();
});
afterAll(endProcesses);

type Send = (orderId: string, fields: Record<string, string>) => Promise<string>;

/** Returns all that a client receives: status, headers and body. */
const overJson: Send = async (orderId, fields) => {
  const response = await postOrder(gateway, validOrderInput({ order_id: orderId, ...fields }));
  return `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`;
};

function overRpc(protocol: string): Send {
  return async (orderId, fields) => {
    const found = rpcClients(OrderService, gateway).find(({ name }) => name === protocol);
    if (found === undefined) throw new Error(`there is no client for ${protocol}`);
    let received = '';
    const message = await found.client
      .createOrder(orderMessage(orderId, fields), {
        headers: credentialHeaders(gateway.credentials),
        onHeader: (headers) => {
          received += JSON.stringify([...headers]);
        },
      })
      .catch((error: unknown) => {
        const { rawMessage, details, metadata } = ConnectError.from(error);
        const texts = details.map((detail) =>
          'value' in detail && detail.value instanceof Uint8Array ? Buffer.from(detail.value).toString('latin1') : '',
        );
        return { rawMessage, texts, metadata: [...metadata] };
      });
    return received + JSON.stringify(message, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  };
}

const protocols: readonly (readonly [string, Send])[] = [
  ['json', overJson],
  ...rpcNames.map((name) => [name, overRpc(name)] as const),
];

test.each(protocols)(
  'over %s, no response contains the text of a field other than order_id',
  async (protocol, send) => {
    for (const field of textFields) {
      // The response to a stored order echoes its order_id. The next test covers errors.
      if (field === 'order_id') continue;
      for (const [index, value] of sensitiveTexts.entries()) {
        const orderId = `leak-${protocol}-${field}-${index}`;
        // The valid text, one with an invalid character, and one that is too long.
        for (const text of [value, `${value}\u0000`, `${value}${'x'.repeat(3_000)}`]) {
          expect(await send(orderId, { [field]: text }), field).not.toContain(value);
        }
        // The valid text in an order that conflicts with a stored one.
        await send(`${orderId}-stored`, {});
        expect(await send(`${orderId}-stored`, { [field]: value }), field).not.toContain(value);
      }
    }
  },
);

test.each(protocols)('over %s, no error contains the order_id', async (_, send) => {
  for (const value of sensitiveTexts) {
    for (const text of [`${value}\u0000`, `${value}${'x'.repeat(128)}`])
      expect(await send(text, {})).not.toContain(value);
    await send(value, {});
    // An order that conflicts with the one stored under this order_id.
    expect(await send(value, { order_note: 'different' })).not.toContain(value);
  }
});

test('the response to a wrong checksum contains the canonical text, but not the secret', async () => {
  const [text = ''] = sensitiveTexts;
  const response = await overJson('leak-checksum', { order_note: text, order_checksum: `v1=${'0'.repeat(64)}` });
  expect(response).toContain('"canonical_text"');
  expect(response).toContain(text);
  expect(response).not.toContain(gateway.credentials.clientSecret);
});

test('responses to malformed requests, wrong credentials and unknown paths do not repeat what was sent', async () => {
  for (const value of sensitiveTexts) {
    const headers = { 'x-client-id': value, 'x-client-secret': value, 'x-request-id': `${value}@` };
    for (const body of [
      `{"order_note": ${value}}`,
      `{"${value}":1,"${value}":2}`,
      `["${value}"]`,
      `{"order_id":"${value}`,
    ]) {
      const malformed = await postOrder(gateway, body);
      expect(await malformed.text()).not.toContain(value);
      const rejected = await postOrder(gateway, body, headers);
      expect(`${JSON.stringify([...rejected.headers])}${await rejected.text()}`).not.toContain(value);
    }
    const notFound = await fetch(`${gateway.url}/${value}?card=${value}`);
    expect(await notFound.text()).not.toContain(value);
  }
});

test('no log line contains anything that was sent, except the order_id of a stored order', async () => {
  const callsSent = protocols.length * (textFields.length - 1) * sensitiveTexts.length * 5;
  await expect.poll(() => gateway.lines.length).toBeGreaterThan(callsSent);
  const log = gateway.lines.map((line) => JSON.stringify({ ...JSON.parse(line), order_id: undefined })).join('\n');
  for (const value of [...sensitiveTexts, gateway.credentials.clientSecret, 'leak-', 'Noor', 'Lindengracht'])
    expect(log).not.toContain(value);
});
