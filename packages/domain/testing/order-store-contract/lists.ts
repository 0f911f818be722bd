import { expect, it } from 'vitest';
import type { AccountId } from '../../src/accounts/account.ts';
import type { Order, OrderStatus } from '../../src/orders/order.ts';
import { transitions } from '../../src/orders/order-states.ts';
import type { OrderFilter } from '../../src/orders/order-store.ts';
import { sampleOrder } from '../sample-orders.ts';
import { hourMs, type OrderStoreSteps, orderExpiringIn, paymentOf, timeoutMs } from './order-store-steps.ts';

/** Tests lists of orders. */
export function describeLists({ opened, create, created, act }: OrderStoreSteps): void {
  const list = async (merchantId: AccountId, filter: Partial<OrderFilter> = {}): Promise<readonly Order[]> => {
    const page = await opened().store.list(merchantId, { limit: 100, ...filter }, timeoutMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    return page.orders;
  };

  it('list returns the orders of the merchant, newest first and, within a millisecond, by descending id', async () => {
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
    const [unexpired, expired, paid] = [
      orderExpiringIn(merchantId, hourMs, { order_id: 'unexpired' }),
      orderExpiringIn(merchantId, -hourMs, { order_id: 'expired' }),
      sampleOrder(merchantId, { order_id: 'paid' }),
    ];
    const withoutExpiry = sampleOrder(merchantId, { order_id: 'without expiry' });
    await Promise.all([unexpired, expired, paid, withoutExpiry].map(create));
    const order: Order = { ...paid, orderStatus: 'PAID', payment: { checkoutId: null, paymentId: 'p', paidAtMs: 1 } };
    await store.change({ transition: transitions.pay, order }, timeoutMs);

    const idsOf = async (status: OrderStatus) =>
      (await list(merchantId, { status })).map(({ fields }) => fields.order_id);
    expect(await idsOf('UN_PAID')).toStrictEqual(['without expiry', 'unexpired']);
    expect(await idsOf('EXPIRED')).toStrictEqual(['expired']);
    expect(await idsOf('PAID')).toStrictEqual(['paid']);
    expect(await idsOf('CANCELLED')).toStrictEqual([]);
    expect((await list(merchantId)).map(({ orderStatus }) => orderStatus)).toStrictEqual([
      'UN_PAID',
      'PAID',
      'EXPIRED',
      'UN_PAID',
    ]);
  });

  it('list filters by metadata, alone and together with the other filters', async () => {
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

  it('list filters by currency, alone and together with the other filters', async () => {
    const { store, merchantIds } = opened();
    const [merchantId, otherMerchant] = await merchantIds();
    const kind = { kind: 'gift' };
    const orders = (['EUR', 'USD', 'USD', 'EUR', 'USD'] as const).map((order_currency, index) => ({
      ...sampleOrder(merchantId, { order_id: `in-${index}`, order_currency }, index < 3 ? kind : null),
      createdAtMs: index,
      expiresAtMs: index === 4 ? 1 : null,
    }));
    await Promise.all([...orders, sampleOrder(otherMerchant, { order_currency: 'USD' })].map(create));
    const indexesOf = async (filter: Partial<OrderFilter>) =>
      (await list(merchantId, filter)).map(({ fields }) => Number(fields.order_id.slice(-1)));
    expect(await indexesOf({ currency: 'USD' })).toStrictEqual([4, 2, 1]);
    expect(await indexesOf({ currency: 'EUR' })).toStrictEqual([3, 0]);
    expect(await indexesOf({ currency: 'JPY' })).toStrictEqual([]);
    expect(await indexesOf({ currency: 'USD', limit: 2 })).toStrictEqual([4, 2]);
    expect(await indexesOf({ currency: 'USD', status: 'UN_PAID' })).toStrictEqual([2, 1]);
    expect(await indexesOf({ currency: 'USD', status: 'EXPIRED' })).toStrictEqual([4]);
    expect(await indexesOf({ currency: 'USD', createdFromMs: 2, createdToMs: 4 })).toStrictEqual([2]);
    expect(await indexesOf({ currency: 'USD', after: (await list(merchantId))[2] })).toStrictEqual([1]);
    expect(await indexesOf({ currency: 'USD', metadata: kind })).toStrictEqual([2, 1]);
    expect(await indexesOf({ currency: 'EUR', metadata: kind, status: 'UN_PAID' })).toStrictEqual([0]);
    expect(await store.list(merchantId, { currency: 'USD', limit: 9 }, timeoutMs)).not.toHaveProperty(
      'scannedTo.createdAtMs',
    );
  });

  it('countByDay counts the orders of each day and currency by their current status', async () => {
    const { store } = opened();
    const [merchantId, otherMerchant] = await opened().merchantIds();
    const dayMs = 24 * hourMs;
    const today = Math.floor(Date.now() / dayMs) * dayMs;
    let madeCount = 0;
    const make = (createdAtMs: number, order: Partial<Order> = {}, order_currency = 'EUR') => {
      madeCount += 1;
      const fields = { order_id: `counted-${madeCount}`, order_currency, order_amount: 10 };
      return created({ ...sampleOrder(merchantId, fields), createdAtMs, ...order });
    };
    await make(today - dayMs - 1);
    await make(today - dayMs);
    await make(today - 1, { expiresAtMs: Date.now() - 1 });
    await make(today, {}, 'USD');
    await make(today, { expiresAtMs: Date.now() + hourMs });
    const paid = [await make(today), await make(today)];
    const cancelled = await make(today);
    await create({ ...sampleOrder(otherMerchant), createdAtMs: today });
    for (const order of paid) expect(await act(order, paymentOf(order, order.orderToken))).toBe('changed');
    for (const id of ['twice', 'again'])
      expect(await act(paid[0] ?? cancelled, paymentOf(paid[0] ?? cancelled, id))).toBe('order_already_paid');
    expect(await act(cancelled, { kind: 'cancel' })).toBe('changed');

    const counted = await store.countByDay(merchantId, today - dayMs, timeoutMs);
    if (counted.kind !== 'found') throw new Error(counted.kind);
    const none = { paid: 0, expired: 0, refusedPayments: 0, paidHundredths: 0n };
    expect(counted.cutOffMs).toBe(undefined);
    expect(counted.days.toSorted((a, b) => a.dayMs - b.dayMs || a.currency.localeCompare(b.currency))).toStrictEqual([
      { ...none, dayMs: today - dayMs, currency: 'EUR', created: 2, expired: 1 },
      { dayMs: today, currency: 'EUR', created: 4, paid: 2, expired: 0, refusedPayments: 2, paidHundredths: 2_000n },
      { ...none, dayMs: today, currency: 'USD', created: 1 },
    ]);
    // Unlike a count, a list stores the expiry.
    expect(await list(merchantId, { status: 'EXPIRED' })).toHaveLength(1);
    expect(await store.countByDay(otherMerchant, Date.now() + hourMs, timeoutMs)).toMatchObject({ days: [] });
  });
}
