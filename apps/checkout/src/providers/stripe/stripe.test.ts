import Stripe from 'stripe';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createStripeProvider } from './stripe.ts';

test('a webhook is valid for five minutes after it was signed', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { verify } = createStripeProvider(fetch);
  const secrets = { webhookSecret: 'whsec_1' };
  const account = { connectionId: '', merchantId: '', mode: 'test', account: '', settings: {}, secrets } as const;
  const payload = JSON.stringify({ object: 'event', type: 'charge.refunded', data: { object: { id: 'ch_1' } } });
  const isValid = (age: number) => {
    const timestamp = Math.floor(Date.now() / 1_000) - age;
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_1', timestamp });
    return verify?.(account, { 'stripe-signature': signature }, payload) !== undefined;
  };
  expect([0, 300, 301].map(isValid)).toEqual([true, true, false]);
});
