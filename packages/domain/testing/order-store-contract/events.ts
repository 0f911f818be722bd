import { expect, it } from 'vitest';
import type { EventPosition } from '../../src/events/event-feed.ts';
import type { Order } from '../../src/orders/order.ts';
import { transitions } from '../../src/orders/order-states.ts';
import { sampleOrder } from '../sample-orders.ts';
import { type OrderStoreSteps, timeoutMs } from './order-store-steps.ts';

/** Tests the event feed. */
export function describeEvents({ opened, create }: OrderStoreSteps): void {
  it('listEvents continues after any position, and returns only the events of the merchant', async () => {
    const { store, merchantIds } = opened();
    const [merchantId, otherMerchant] = await merchantIds();
    const orders = [merchantId, merchantId, otherMerchant, merchantId].map((id, index) =>
      sampleOrder(id, { order_id: `event-${index}` }),
    );
    await Promise.all(orders.map(create));
    for (const order of orders) {
      const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 };
      await store.change({ transition: transitions.cancel, order: cancelled }, timeoutMs);
    }

    const seen: string[] = [];
    let after: EventPosition | undefined;
    const poll = async () => {
      const page = await store.listEvents(merchantId, { after, limit: 1 }, timeoutMs);
      const [event] = page.kind === 'found' ? page.events : [];
      if (event !== undefined) seen.push(event.order.fields.order_id);
      after = event ?? after;
      return seen;
    };
    await expect.poll(poll, { timeout: timeoutMs }).toStrictEqual(['event-0', 'event-1', 'event-3']);
  });
}
