import type { MerchantId } from '../src/merchant.ts';
import type { Order } from '../src/order.ts';
import type { OrderStore } from '../src/order-store.ts';

/** Keeps orders as long as the object lives. Always at hand, so it never answers anything but `created` and `exists`. */
export interface InMemoryOrderStore extends OrderStore {
  /** The merchant's orders, oldest first. */
  ordersOf(merchantId: MerchantId): readonly Order[];
}

/** An order store for the tests of those who use one. */
export function createInMemoryOrderStore(): InMemoryOrderStore {
  const ordersByMerchant = new Map<MerchantId, Map<string, Order>>();

  return {
    // Nothing is awaited between the look and the write, so racing calls cannot come between them.
    async create(order) {
      const orders = ordersByMerchant.get(order.merchantId) ?? new Map<string, Order>();
      const first = orders.get(order.fields.order_id);
      if (first !== undefined) return { kind: 'exists', order: first };
      ordersByMerchant.set(order.merchantId, orders.set(order.fields.order_id, order));
      return { kind: 'created' };
    },
    ordersOf: (merchantId) => [...(ordersByMerchant.get(merchantId)?.values() ?? [])],
  };
}
