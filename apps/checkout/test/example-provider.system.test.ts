import pino from 'pino';
import { expect, test } from 'vitest';
import { createAdvance } from '../src/attempts/advance.ts';
import { openGateway } from '../src/gateway/gateway.ts';
import type { Account } from '../src/providers/provider.ts';
import { createExampleProvider } from '../testing/example-provider.ts';
import { useWorld } from './helpers/world.ts';

// The example of docs/architecture.md. The gateway is a process, because apps do not import each other.

const world = useWorld('live');

/** The sessions at the provider, which stands in for a real one. */
const sessions = new Map<string, Record<string, string>>();

const provider = createExampleProvider(async (url, { body }) => {
  const [, , id, action] = new URL(url).pathname.split('/');
  if (id === undefined) {
    const session = JSON.parse(String(body));
    const opened = { ...session, id: `s${sessions.size}`, url: 'https://provider.example/pay', state: 'open' };
    sessions.set(opened.id, opened);
    return Response.json(opened);
  }
  const session = sessions.get(id) ?? {};
  if (action === 'capture') session.state = 'captured';
  if (action === 'close') session.state = session.state === 'authorised' ? 'released' : 'closed';
  return Response.json(session);
});

/**
 * Starts an attempt with the example, and returns how to continue it. The checkout of the world, which does not have the
 * example, can hold its lease for a moment.
 */
async function start(orderId: string) {
  const { clientId: merchantId } = world.merchant;
  const orderToken = await world.createOrder(orderId, { order_amount: 12.34, order_currency: 'EUR' });
  const order = { orderToken, orderId, merchantId, serviceOrderId: 1, amountHundredths: 1_234n, currency: 'EUR' };
  const chosen = { provider: 'example', connectionId: 'con_example', method: 'card', locale: 'en' };
  const sessionEndsAt = new Date(Date.now() + 2_100_000);
  const attempt = await world.store.start({ ...order, ...chosen, sessionEndsAt, dueAt: null });
  const { gatewayGrpcUrl, credentials } = world.options;
  const advance = createAdvance({
    store: world.store,
    gateway: openGateway(gatewayGrpcUrl, credentials),
    providers: new Map([[provider.name, provider]]),
    accountOf: async () => ({ secrets: { key: 'k' } }) as unknown as Account,
    baseUrl: () => 'https://checkout.example.com',
    logger: pino({ level: 'silent' }),
    metrics: { countState() {}, countDifference() {} },
  });
  return () => advance(attempt?.attemptId ?? '');
}

function authorise(orderId: string, amount = '12.34') {
  const session = [...sessions.values()].find(({ description }) => description === orderId) ?? {};
  Object.assign(session, {
    state: 'authorised',
    payment_id: `p-${orderId}`,
    paid_at: new Date().toISOString(),
    amount,
  });
  return session;
}

test('an order is paid with the example of a provider', async () => {
  const advance = await start('example');
  await expect.poll(advance).toMatchObject({ state: 'OPEN', sessionUrl: 'https://provider.example/pay' });
  const session = authorise('example');
  await expect.poll(advance).toMatchObject({ state: 'RECORDED' });
  expect(session.state).toBe('captured');
  expect(await world.findOrder('example')).toMatchObject({ order_status: 'PAID', payment_id: 'p-example' });
});

test('the example releases an authorisation of another amount', async () => {
  const advance = await start('too-little');
  await expect.poll(advance).toMatchObject({ state: 'OPEN' });
  const session = authorise('too-little', '12.33');
  await expect.poll(advance).toMatchObject({ state: 'ENDED', reason: 'payment_mismatch' });
  expect(session.state).toBe('released');
  expect(await world.findOrder('too-little')).toMatchObject({ order_status: 'UN_PAID' });
});
