// The providers themselves, with the test key of an account: `pnpm --filter checkout run test:stripe` with
// STRIPE_TEST_KEY, and `test:mollie` with MOLLIE_TEST_KEY. They move no money. No other run includes this file.
import { expect, test } from 'vitest';
import { createMollieProvider } from '../src/providers/mollie/mollie.ts';
import { network } from '../src/providers/paced.ts';
import type { Account } from '../src/providers/provider.ts';
import { createStripeProvider } from '../src/providers/stripe/stripe.ts';
import { newId } from '../src/store/ids.ts';
import type { Attempt } from '../src/store/store.ts';

const stripe = { provider: createStripeProvider(network), key: process.env.STRIPE_TEST_KEY ?? '', isClosable: true };
const mollie = { provider: createMollieProvider(network), key: process.env.MOLLIE_TEST_KEY ?? '', isClosable: false };

test.each([
  ['stripe', stripe],
  ['mollie', mollie],
] as const)('%s opens, shows, lists and closes a payment', async (name, { provider, key, isClosable }) => {
  const found = await provider.identify?.({ key });
  expect(found?.mode).toBe('test');
  const attemptId = newId('att');
  const attempt = {
    attemptId,
    orderId: attemptId,
    serviceOrderId: 1,
    provider: name,
    connectionId: 'con_1',
    method: found?.settings?.methods?.split(' ')[0] ?? 'card',
    amountHundredths: 1_000n,
    currency: 'EUR',
    locale: 'de',
    sessionId: null,
    sessionEndsAt: new Date(Date.now() + 35 * 60_000),
  } as unknown as Attempt;
  const account = { ...found, connectionId: 'con_1', secrets: { key } } as unknown as Account;
  const request = provider.open.request(attempt, { backUrl: 'https://shop.example/back' });
  const idempotencyKey = newId('key');
  const session = await provider.open.send(account, request, idempotencyKey);
  expect(await provider.open.send(account, request, idempotencyKey)).toEqual(session);
  const opened = { ...attempt, ...session };
  expect(await provider.look(account, session.sessionId)).toEqual({ is: 'open' });
  const listed = await Array.fromAsync(provider.history?.(account, new Date(Date.now() - 60_000)) ?? []);
  expect(listed).toContainEqual({ attemptId, seen: { is: 'open' } });
  if (!isClosable) return;
  await provider.close.send(account, provider.close.request(opened, { is: 'open' }), newId('key'));
  expect(await provider.look(account, session.sessionId)).toMatchObject({ is: 'gone' });
});
