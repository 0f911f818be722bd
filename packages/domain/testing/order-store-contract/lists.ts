import { expect, it } from 'vitest';
import type { AccountId } from '../../src/accounts/account.ts';
import type { Order, OrderStatus } from '../../src/orders/order.ts';
import { transitions } from '../../src/orders/order-states.ts';
import type { OrderFilter } from '../../src/orders/order-store.ts';
import { sampleOrder } from '../sample-orders.ts';
import { hourMs, type OrderStoreSteps, orderExpiringIn, timeoutMs } from './order-store-steps.ts';

/** The tests of lists of orders. */
export function describeLists({ opened, create }: OrderStoreSteps): void {
  const list = async (merchantId: AccountId, filter: Partial<OrderFilter> = {}): Promise<readonly Order[]> => {
    const page = await opened().store.list(merchantId, { limit: 100, ...filter }, timeoutMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    return page.orders;
  };

  it('list returns the orders of the merchant, newest first, of one millisecond the highest id first', async () => {
    const [merchantId, otherMerchant] = await opened().merchantIds();
    const orders = [3, 1, 2, 2, 1].map((createdAtMs, index) => ({
      ...sampleOrder(merchantId, { order_id: `listed-${index}` }),
      createdAtMs,
    }));
    await Promise.all([...orders, sampleOrder(otherMerchant)].map(create));

    const newestFirst = [0, 3, 2, 4, 1].map((index) => orders[index]);
    expect(await list(merchantId)).toStrictEqual(newestFirst);
    expect(await list(merchantId, { limit: 2 })).toStrictEqual(newestFirst.slice(0, 2));
    expect(await list(merchantId, { limit: 2, after: newestFirst[1] })).toStrictEqual(newestFirst.slice(2, 4));
    expect(await list(merchantId, { createdFromMs: 2 })).toStrictEqual(newestFirst.slice(0, 3));
    expect(await list(merchantId, { createdToMs: 2 })).toStrictEqual(newestFirst.slice(3));
    expect(await list(merchantId, { createdFromMs: 1, createdToMs: 2, after: orders[4] })).toStrictEqual([orders[1]]);
    expect(await list(merchantId, { createdFromMs: 4 })).toStrictEqual([]);
  });

  it('list filters by the current status', async () => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const [open, ended, paid] = [
      orderExpiringIn(merchantId, hourMs, { order_id: 'open' }),
      orderExpiringIn(merchantId, -hourMs, { order_id: 'ended' }),
      sampleOrder(merchantId, { order_id: 'paid' }),
    ];
    const endless = sampleOrder(merchantId, { order_id: 'endless' });
    await Promise.all([open, ended, paid, endless].map(create));
    const order: Order = { ...paid, orderStatus: 'PAID', payment: { checkoutId: null, paymentId: 'p', paidAtMs: 1 } };
    await store.change({ transition: transitions.pay, order }, timeoutMs);

    const idsOf = async (status: OrderStatus) =>
      (await list(merchantId, { status })).map(({ fields }) => fields.order_id);
    expect(await idsOf('UN_PAID')).toStrictEqual(['endless', 'open']);
    expect(await idsOf('EXPIRED')).toStrictEqual(['ended']);
    expect(await idsOf('PAID')).toStrictEqual(['paid']);
    expect(await idsOf('CANCELLED')).toStrictEqual([]);
    expect((await list(merchantId)).map(({ orderStatus }) => orderStatus)).toStrictEqual([
      'UN_PAID',
      'PAID',
      'EXPIRED',
      'UN_PAID',
    ]);
  });

  it('list filters by pairs of metadata, and by the other filters too', async () => {
    const { store, merchantIds } = opened();
    const [merchantId, otherMerchant] = await merchantIds();
    const both = { cart: '17', kind: 'gift' };
    const orders = [both, { cart: '17' }, { kind: 'gift' }, null, both].map((metadata, index) => ({
      ...sampleOrder(merchantId, { order_id: `with-metadata-${index}` }, metadata),
      createdAtMs: index,
    }));
    await Promise.all([...orders, sampleOrder(otherMerchant, {}, both)].map(create));
    const paid: Order = {
      ...sampleOrder(merchantId),
      ...orders[1],
      orderStatus: 'PAID',
      payment: { checkoutId: null, paymentId: 'p', paidAtMs: 1 },
    };
    await store.change({ transition: transitions.pay, order: paid }, timeoutMs);

    const indexesOf = async (filter: Partial<OrderFilter>) =>
      (await list(merchantId, filter)).map(({ fields }) => Number(fields.order_id.slice(-1)));
    expect(await indexesOf({ metadata: { cart: '17' } })).toStrictEqual([4, 1, 0]);
    expect(await indexesOf({ metadata: both })).toStrictEqual([4, 0]);
    expect(await indexesOf({ metadata: { cart: '1' } })).toStrictEqual([]);
    expect(await indexesOf({ metadata: { cart: '17', kind: 'none' } })).toStrictEqual([]);
    expect(await indexesOf({ metadata: { cart: '17' }, status: 'PAID' })).toStrictEqual([1]);
    expect(await indexesOf({ metadata: { cart: '17' }, createdFromMs: 1, createdToMs: 4 })).toStrictEqual([1]);
    expect(await indexesOf({ metadata: { cart: '17' }, limit: 2 })).toStrictEqual([4, 1]);
    expect(await indexesOf({ metadata: { cart: '17' }, after: (await list(merchantId))[3] })).toStrictEqual([0]);
    expect((await list(merchantId)).map(({ metadata }) => metadata)).toStrictEqual(
      orders.map(({ metadata }) => metadata).toReversed(),
    );
  });
}
