import type { MerchantId } from '../src/merchant.ts';
import type { Order } from '../src/order.ts';
import type { OrderStore } from '../src/order-store.ts';

/** Stores orders in memory. It is never overloaded, unavailable or late. */
export interface InMemoryOrderStore extends OrderStore {
  /** Returns the merchant's orders, oldest first. */
  ordersOf(merchantId: MerchantId): readonly Order[];
}

/** Returns an order store for the tests of its users. `nameOf` returns the merchants' names. */
export function createInMemoryOrderStore(
  nameOf: (merchantId: MerchantId) => string = (merchantId) => `Merchant ${merchantId}`,
): InMemoryOrderStore {
  const ordersByMerchant = new Map<MerchantId, Map<string, Order>>();
  const ordersOf = (merchantId: MerchantId) => [...(ordersByMerchant.get(merchantId)?.values() ?? [])];
  const lookup = (order: Order | undefined) =>
    order === undefined ? ({ kind: 'unknown' } as const) : ({ kind: 'found', order } as const);

  return {
    // There is no await between the look-up and the write, so racing calls cannot interleave.
    async create(order) {
      const orders = ordersByMerchant.get(order.merchantId) ?? new Map<string, Order>();
      const first = orders.get(order.fields.order_id);
      if (first !== undefined) return { kind: 'exists', order: first };
      ordersByMerchant.set(order.merchantId, orders.set(order.fields.order_id, order));
      return { kind: 'created' };
    },
    findByOrderId: async (merchantId, orderId) => lookup(ordersByMerchant.get(merchantId)?.get(orderId)),
    findByServiceOrderId: async (merchantId, serviceOrderId) =>
      lookup(ordersOf(merchantId).find((order) => order.serviceOrderId === serviceOrderId)),
    async findByToken(token) {
      const all = [...ordersByMerchant.keys()].flatMap(ordersOf);
      const order = all.find(({ orderToken }) => orderToken === token);
      return order === undefined
        ? { kind: 'unknown' }
        : { kind: 'found', order, merchantName: nameOf(order.merchantId) };
    },
    ordersOf,
  };
}
