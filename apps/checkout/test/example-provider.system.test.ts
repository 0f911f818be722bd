import { afterAll, expect, test, vi } from 'vitest';
import { createExampleProvider } from '../testing/example-provider.ts';
import { useWorld } from './helpers/world.ts';

// The example of docs/architecture.md takes the place of Mollie's folder, so that the list of all providers, the pages,
// the sweep and the refunds find it as they find any provider.

// The files of a run share their modules, so those that import the list are loaded again here, and after this file.
vi.hoisted(() => vi.resetModules());
vi.mock(import('../src/providers/mollie/mollie.ts'), async () => ({ createMollieProvider: createExampleProvider }));
afterAll(() => void vi.resetModules());

interface Session extends Record<string, unknown> {
  readonly refunds: object[];
}

/** The sessions at the provider, by the order_id. */
const sessions = new Map<string, Session>();

/** Takes the place of the provider. */
async function send(url: string, { method, body }: RequestInit): Promise<Response> {
  const [, , id = '', action] = new URL(url).pathname.split('/');
  const request = method === 'POST' ? JSON.parse(String(body)) : undefined;
  if (id === '') {
    const { description } = request;
    const session = { ...request, id: description, url: `https://provider.example/${description}`, state: 'open' };
    sessions.set(description, { ...session, refunds: [] });
    return Response.json(session);
  }
  const session = sessions.get(id) ?? { refunds: [] };
  if (action === 'capture') session.state = 'captured';
  if (action === 'close') session.state = session.state === 'authorised' ? 'released' : 'closed';
  if (action !== 'refunds' || request === undefined) return Response.json(session);
  const refund = { ...request, id: `re-${session.refunds.length}`, status: 'SUCCEEDED' };
  session.refunds.push(refund);
  return Response.json(refund);
}

const world = useWorld('live', send);

/** Pays an amount at the provider. Returns its session, and the address to which the customer is finally sent. */
async function pay(orderId: string, amount: string) {
  if ((await world.store.listConnections()).length === 0) await world.connect('example', 'acct', { key: 'k' });
  const orderToken = await world.createOrder(orderId, { order_amount: 12.34, order_currency: 'EUR' });
  const chosen = await world.post(`/pay/${orderToken}`);
  expect(chosen.headers.get('location')).toBe(`https://provider.example/${orderId}`);
  const session = sessions.get(orderId);
  const payment = { payment_id: `p-${orderId}`, paid_at: new Date().toISOString(), amount };
  Object.assign(session ?? {}, payment, { state: 'authorised' });
  const returned = await world.get(new URL(`${session?.return_url}`).pathname);
  return { session, orderToken, location: returned.headers.get('location') ?? '' };
}

test('an order is paid and refunded with the example of a provider', async () => {
  const { session, location } = await pay('example', '12.34');
  expect([session?.state, new URL(location).searchParams.get('order_status')]).toEqual(['captured', 'PAID']);
  expect(await world.findOrder('example')).toMatchObject({ order_status: 'PAID', payment_id: 'p-example' });
  const requested = await world.call('POST', '/order/example/refunds', { refund_id: 'r-1', refund_amount: 2 });
  expect(requested.status).toBe(201);
  await expect
    .poll(async () => {
      await world.refunds.makePending();
      await world.refunds.reportListed();
      return world.findOrder('example');
    })
    .toMatchObject({ refunded_amount: 2, refunds: [{ refund_id: 'r-1', provider_refund_id: 're-0' }] });
  expect(session?.refunds).toHaveLength(1);
});

test('the example releases an authorisation of another amount', async () => {
  const { session, orderToken, location } = await pay('too-little', '12.33');
  expect([session?.state, location]).toEqual(['released', `/pay/${orderToken}`]);
  expect(await world.findOrder('too-little')).toMatchObject({ order_status: 'UN_PAID' });
});
