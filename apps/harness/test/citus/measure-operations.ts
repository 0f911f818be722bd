import { loadFixtures } from '@order-gateway/fixtures';
import type { OwnGateway } from '../../src/gateway/own-gateway.ts';

/** The operations, in the order in which each round measures them. */
export const measuredOperations = [
  'create',
  'replay',
  'get',
  'page',
  'list',
  'events',
  'resolve',
  'pay',
  'cancel',
] as const;

export type Milliseconds = Readonly<Record<(typeof measuredOperations)[number], number>>;

/**
 * Returns a function that measures each operation once, one call after the other, over JSON. Each round cancels a
 * second order, whose creation is not measured. Rejects if a response is not a success.
 */
export async function operationMeter({ httpUrl, credentials }: OwnGateway) {
  const { validOrder } = await loadFixtures();
  const merchants = credentials.slice(0, -1);
  const checkout = credentials.at(-1);
  let round = 0;
  const send = async (path: string, account: (typeof credentials)[number] | undefined, body?: object) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(account && { 'x-client-id': account.clientId, 'x-client-secret': account.clientSecret }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const startMs = performance.now();
    const response = await fetch(`${httpUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const responseBody = (await response.json()) as Record<string, string>;
    const ms = performance.now() - startMs;
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(responseBody)}`);
    return { ms, responseBody };
  };
  return async (): Promise<Milliseconds> => {
    round += 1;
    const merchant = merchants[round % merchants.length];
    const order = { ...validOrder, order_id: `measured-${round}`, order_amount: 49.99 };
    const cancelled = { ...order, order_id: `cancelled-${round}` };
    await send('/order', merchant, cancelled);
    const create = await send('/order', merchant, order);
    const { order_token, created_at } = create.responseBody;
    const payment = {
      payment_id: `p-${round}`,
      paid_at: created_at,
      order_amount: 49.99,
      order_currency: validOrder.order_currency,
    };
    const service = '/gateway.v1.CheckoutService';
    const times = {
      replay: await send('/order', merchant, order),
      get: await send(`/order/${order.order_id}`, merchant),
      page: await send(`/payment/${order_token}`, undefined),
      list: await send('/orders', merchant),
      events: await send('/events', merchant),
      resolve: await send(`${service}/ResolvePaymentLink`, checkout, { order_token }),
      pay: await send(`${service}/RecordPayment`, checkout, { order_token, ...payment }),
      cancel: await send(`/order/${cancelled.order_id}/cancel`, merchant, {}),
    };
    return {
      create: create.ms,
      ...(Object.fromEntries(Object.entries(times).map(([name, { ms }]) => [name, ms])) as Omit<
        Milliseconds,
        'create'
      >),
    };
  };
}
