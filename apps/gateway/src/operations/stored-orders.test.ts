import type { LinkLookup, Order, OrderLookupKey } from '@order-gateway/domain/orders';
import { success } from '@order-gateway/domain/result';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { caller, merchant } from '../../test/helpers/fixed-deps.ts';
import type { NotedOrder } from '../calls/operation.ts';
import { retryAfter, storageFailure } from '../calls/store-failure.ts';
import { cancelOrder } from './orders.ts';
import type { OperationDeps } from './service.ts';
import { findLinkToPay, findOrder } from './stored-orders.ts';

type Store = OperationDeps['store'];

/** Creates a store with one unpaid order. `queries` contains the names of the methods that were called. */
async function createStore() {
  const memory = createInMemoryOrderStore();
  const order = sampleOrder(merchant.id);
  await memory.create(order, 1_000);
  const queries: PropertyKey[] = [];
  const store = new Proxy<Store>(memory, {
    get(target, name: keyof Store) {
      queries.push(name);
      return target[name];
    },
  });
  return { store, order, queries };
}

test.each<[OrderLookupKey, string[]]>([
  [{ by: 'order_id', orderId: 'o'.repeat(129) }, []],
  [{ by: 'order_id', orderId: 'o'.repeat(128) }, ['findByOrderId']],
  [{ by: 'payment_id', paymentId: 'p\n' }, []],
  [{ by: 'payment_id', paymentId: 'p' }, ['findByPaymentId']],
  [{ by: 'service_order_id', serviceOrderId: 0n }, []],
  [{ by: 'service_order_id', serviceOrderId: 1n }, ['findByServiceOrderId']],
  [{ by: 'service_order_id', serviceOrderId: 2n ** 53n - 1n }, ['findByServiceOrderId']],
  [{ by: 'service_order_id', serviceOrderId: 2n ** 53n }, []],
])('a key is looked up only if an order can have it: %o', async (key, queried) => {
  const { store, queries } = await createStore();
  expect(await findOrder({ store }, caller, key)).toMatchObject({
    failure: { kind: 'not_found', unknown: key.by },
  });
  expect(queries).toEqual(queried);
});

test.each([
  ['UN_PAID', true, false],
  ['UN_PAID', false, true],
  ['PAID', true, true],
] as const)(
  'with an order that is %s and isDisabled %s, findLinkToPay finds the link: %s',
  async (orderStatus, isDisabled, isFound) => {
    const link = { kind: 'found', order: { orderStatus } as Order, merchant: { isDisabled } } as LinkLookup;
    const store = { findByToken: async () => link } as unknown as Store;
    const found = await findLinkToPay({ store }, caller, '0'.repeat(32));
    expect(found).toMatchObject(isFound ? success(link) : { failure: { kind: 'not_found', unknown: 'payment_link' } });
  },
);

test('an order is noted for the log as it was found, and as it was changed', async () => {
  const { store, order } = await createStore();
  const noted: NotedOrder[] = [];
  const deps = { store, now: () => order.createdAtMs };
  const noting = { ...caller, concerns: (concerned: NotedOrder) => void noted.push(concerned) };
  const cancelled = await cancelOrder(deps, noting, { by: 'order_id', orderId: order.fields.order_id });
  expect(cancelled).toMatchObject({ ok: true, value: { replayed: false } });
  expect(noted.map((noted) => ('orderStatus' in noted ? noted.orderStatus : 'new'))).toEqual(['UN_PAID', 'CANCELLED']);
});

test('a lookup that fails is reported as such, and does not deny that the order exists', async () => {
  const fails = async () => ({ kind: 'unavailable' as const });
  const store = { ...createInMemoryOrderStore(), findByOrderId: fails, findByToken: fails };
  const failure = { ok: false, failure: { kind: 'unavailable' } };
  expect(await findOrder({ store }, caller, { by: 'order_id', orderId: 'o' })).toEqual(failure);
  expect(await findLinkToPay({ store }, caller, '0'.repeat(32))).toEqual(failure);
});

test('overloaded is the only storage failure with a wait, which includes up to two seconds of jitter', () => {
  expect([storageFailure('unavailable'), storageFailure('deadline_exceeded')]).toEqual([
    { kind: 'unavailable' },
    { kind: 'deadline_exceeded' },
  ]);
  expect(storageFailure('overloaded')).toEqual({ kind: 'overloaded', retryAfterMs: expect.any(Number) });
  const waits = Array.from({ length: 1_000 }, () => retryAfter(500));
  expect(waits.every((wait) => Number.isInteger(wait) && wait >= 500 && wait <= 2_500)).toBe(true);
  expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(1_000);
});
