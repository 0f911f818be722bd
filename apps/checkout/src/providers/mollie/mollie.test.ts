import { expect, test } from 'vitest';
import type { Attempt } from '../../store/store.ts';
import type { Account } from '../provider.ts';
import { createMollieProvider } from './mollie.ts';

const account = { secrets: { key: 'live_1' } } as unknown as Account;
const attempt = { paymentId: 'tr_1' } as Attempt;

/** Reads the refunds of a payment from a response with this body. */
const readRefunds = (body: string | ReadableStream, status = 200) =>
  createMollieProvider(async () => new Response(body, { status })).reversals(account, attempt);

test.each([
  ['a connection that broke', new ReadableStream({ pull: (stream) => stream.error(new TypeError('terminated')) })],
  ['a body without its end', '{"id":"tr_1","_embedded":{"refunds":['],
  ['no body', ''],
])('%s does not hide the refunds of a payment, which would be refunded again', async (_, body) => {
  await expect(readRefunds(body)).rejects.toThrow('unanswered: no_response');
});

test('an error page of a proxy is an error of Mollie', async () => {
  await expect(readRefunds('<h1>Bad gateway</h1>', 502)).rejects.toThrow('unanswered: 502_error');
});

test('the list of payments shows sums instead of captures and refunds', async () => {
  const eur = (value: string) => ({ currency: 'EUR', value });
  const payment = { status: 'paid', amount: eur('10.00'), createdAt: new Date(), metadata: { attempt_id: 'att_1' } };
  const payments = [
    { ...payment, id: 'tr_3', amountCaptured: eur('4.00'), amountRefunded: eur('0.00') },
    { ...payment, id: 'tr_2', amountCaptured: eur('4.00'), amountRefunded: eur('4.00') },
    { ...payment, id: 'tr_1', amountRefunded: eur('10.00') },
  ];
  const provider = createMollieProvider(async () => Response.json({ _embedded: { payments }, _links: {} }));
  const seen = await Array.fromAsync(provider.history?.(account, new Date(0)) ?? [], ({ seen }) => seen);
  expect(seen).toMatchObject([{ is: 'captured', amount: 400n }, { is: 'refunded' }, { is: 'refunded' }]);
});
