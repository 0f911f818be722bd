import Stripe from 'stripe';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ProviderError } from '../provider.ts';
import { createStripeProvider } from './stripe.ts';

const connection = { connectionId: '', merchantId: '', mode: 'test', account: '', settings: {} } as const;

test('a webhook is valid for five minutes after it was signed', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { verify } = createStripeProvider(fetch);
  const secrets = { webhookSecret: 'whsec_1' };
  const account = { ...connection, secrets };
  const payload = JSON.stringify({ object: 'event', type: 'charge.refunded', data: { object: { id: 'ch_1' } } });
  const isValid = (age: number) => {
    const timestamp = Math.floor(Date.now() / 1_000) - age;
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_1', timestamp });
    return verify?.(account, { 'stripe-signature': signature }, payload) !== undefined;
  };
  expect([0, 300, 301].map(isValid)).toEqual([true, true, false]);
});

test.each(['history', 'recent', 'reversed'] as const)(
  'a key that no longer works fails the list %s with an error of the provider',
  async (list) => {
    const error = { type: 'invalid_request_error', code: 'api_key_expired' };
    const provider = createStripeProvider(async () => Response.json({ error }, { status: 401 }));
    const items = provider[list]?.({ ...connection, secrets: { key: 'rk_test_1' } }, new Date());
    await expect(Array.fromAsync<unknown>(items ?? [])).rejects.toThrow(
      new ProviderError('unanswered', 'api_key_expired'),
    );
  },
);
