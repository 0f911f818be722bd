import { expect, test } from 'vitest';
import type { CheckoutOrder } from '../gateway/gateway.ts';
import type { Attempt, Connection } from '../store/store.ts';
import { offersFor } from './offers.ts';
import type { Method, Provider } from './provider.ts';

/** A method that takes whole amounts of at least 10.00 and at most 20.00, in JPY only. */
const method = (name: string): Method => ({
  name,
  decimals: (currency) => (currency === 'JPY' ? 0 : undefined),
  range: () => [1_000n, 2_000n],
});
const providers = new Map(
  [
    { name: 'bank', identify() {}, methods: [method('card'), method('wallet')] },
    { name: 'demo', methods: [method('demo')] },
  ].map((provider) => [provider.name, provider as unknown as Provider]),
);

/** Returns the ids of the offers for an order of the merchant's live account `live` and test account `test`. */
async function offered(
  order: Partial<Pick<CheckoutOrder, 'mode' | 'orderAmount' | 'orderCurrency'>> = {},
  {
    settings,
    refused = [],
  }: { readonly settings?: Connection['settings']; readonly refused?: Partial<Attempt>[] } = {},
) {
  const connections = ['live', 'test'].map((mode) => ({ connectionId: mode, provider: 'bank', mode, settings }));
  const store = {
    connectionsOf: async () => connections as unknown as Connection[],
    withReason: async () => refused as Attempt[],
  };
  const complete = { mode: 'live', orderAmount: 10, orderCurrency: 'JPY', ...order } as CheckoutOrder;
  return (await offersFor({ store, providers }, 'token', complete)).map(({ id }) => id);
}

test('an order is offered the methods of the accounts with its mode, and only a test order the test payment', async () => {
  expect(await offered()).toEqual(['live.card', 'live.wallet']);
  expect(await offered({ mode: 'test' })).toEqual(['test.card', 'test.wallet', 'demo.demo']);
});

test.each<[Partial<CheckoutOrder>, boolean]>([
  [{ orderAmount: 9 }, false],
  [{ orderAmount: 10 }, true],
  [{ orderAmount: 20 }, true],
  [{ orderAmount: 21 }, false],
  [{ orderAmount: 10.5 }, false],
  [{ orderCurrency: 'EUR' }, false],
])('an order with %o is offered: %s', async (order, isOffered) => {
  expect((await offered(order)).length > 0).toBe(isOffered);
});

test('a method that the account may not use, or whose provider refused the amount, is not offered', async () => {
  expect(await offered({}, { settings: { methods: 'wallet other' } })).toEqual(['live.wallet']);
  const refused = { connectionId: 'live', provider: 'bank', method: 'wallet' };
  expect(await offered({}, { refused: [refused] })).toEqual(['live.card']);
});
