import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { AccountId } from '../../src/accounts/account.ts';
import { createOrderToken } from '../../src/links/order-token.ts';
import type { Order } from '../../src/orders/order.ts';
import { serviceOrderIdMax } from '../../src/orders/service-order-id.ts';
import { sampleOrder } from '../sample-orders.ts';
import { naughtyTexts } from './naughty-texts.ts';
import { type OrderStoreSteps, paymentOf, timeoutMs } from './order-store-steps.ts';

/** Tests the lookups. */
export function describeLookups({ opened, create, created, find, act }: OrderStoreSteps): void {
  it('lookups by order_id, by service order id and by token return the complete order', async () => {
    const { store, merchantIds, nameOf } = opened();
    const [merchantId] = await merchantIds();
    const order = sampleOrder(merchantId, { customer_address_line2: undefined, order_note: 'First line\n\tsecond' });
    await create(sampleOrder(merchantId, { order_id: 'one before' }));
    await create(order);
    await create(sampleOrder(merchantId, { order_id: 'one after' }));

    const found = { kind: 'found', order };
    expect(await store.findByOrderId(merchantId, order.fields.order_id, timeoutMs)).toStrictEqual(found);
    expect(await store.findByServiceOrderId(merchantId, order.serviceOrderId, timeoutMs)).toStrictEqual(found);
    const link = {
      ...found,
      merchant: {
        clientId: expect.stringMatching(/^app_/),
        name: nameOf(merchantId),
        mode: 'live',
        isDisabled: false,
        returnSecrets: [],
        brand: null,
      },
    };
    expect(await store.findByToken(order.orderToken, timeoutMs)).toStrictEqual(link);
    expect(await store.findForPage(order.orderToken, timeoutMs)).toStrictEqual(link);
  });

  it('lookups find an order as soon as create has returned', async () => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const orders = Array.from({ length: 40 }, (_, index) => sampleOrder(merchantId, { order_id: `at once ${index}` }));

    const found = await Promise.all(
      orders.map(async (order) => {
        await create(order);
        return store.findByOrderId(merchantId, order.fields.order_id, timeoutMs);
      }),
    );
    expect(found).toStrictEqual(orders.map((order) => ({ kind: 'found', order })));
  });

  it("lookups by id never find another merchant's order; a lookup by token finds it with its merchant's name", async () => {
    const { store, merchantIds, nameOf } = opened();
    const [firstMerchant, secondMerchant] = await merchantIds();
    const first = sampleOrder(firstMerchant);
    const second = sampleOrder(secondMerchant);
    await create(first);

    expect(await store.findByOrderId(secondMerchant, first.fields.order_id, timeoutMs)).toStrictEqual({
      kind: 'unknown',
    });
    expect(await store.findByServiceOrderId(secondMerchant, first.serviceOrderId, timeoutMs)).toStrictEqual({
      kind: 'unknown',
    });
    await create(second);
    expect(await store.findByOrderId(secondMerchant, first.fields.order_id, timeoutMs)).toMatchObject({
      order: second,
    });
    expect(await store.findByToken(first.orderToken, timeoutMs)).toMatchObject({
      merchant: { name: nameOf(firstMerchant) },
    });
    expect(await store.findByToken(second.orderToken, timeoutMs)).toMatchObject({
      merchant: { name: nameOf(secondMerchant) },
    });
  });

  it('findByPaymentId finds the order that was paid last, or else the order whose payment was refused last', async () => {
    const { store, merchantIds } = opened();
    const [merchantId, otherMerchantId] = await merchantIds();
    const createdAs = (order_id: string) => created(sampleOrder(merchantId, { order_id }));
    const [first, second, third] = [await createdAs('first'), await createdAs('second'), await createdAs('third')];
    // Four checkout systems, whose ids are those of merchants, use the same payment_id.
    const pay = (order: Order, checkoutId: AccountId, paidAtMs: number, currency = order.fields.order_currency) => {
      const { kind, payment } = paymentOf(order, 'p-1', paidAtMs);
      return act(order, { kind, payment: { ...payment, checkoutId, currency } });
    };
    const foundBy = async (id: AccountId, paymentId: string) => {
      const found = await store.findByPaymentId(id, paymentId, timeoutMs);
      return found.kind === 'found' ? found.order.fields.order_id : found.kind;
    };
    const { createdAtMs } = first;
    expect(await foundBy(merchantId, 'p-1')).toBe('unknown');
    expect(await pay(second, merchantId, createdAtMs, 'JPY')).toBe('payment_mismatch');
    expect(await foundBy(merchantId, 'p-1')).toBe('second');
    expect(await pay(first, otherMerchantId, createdAtMs, 'JPY')).toBe('payment_mismatch');
    expect(await foundBy(merchantId, 'p-1')).toBe('first');
    const [thirdCheckout, fourthCheckout] = await merchantIds();
    expect(await pay(second, thirdCheckout, createdAtMs + 2)).toBe('changed');
    expect(await foundBy(merchantId, 'p-1')).toBe('second');
    expect(await pay(third, fourthCheckout, createdAtMs + 1)).toBe('changed');
    expect(await foundBy(merchantId, 'p-1')).toBe('second');
    expect(await foundBy(merchantId, 'P-1')).toBe('unknown');
    expect(await foundBy(otherMerchantId, 'p-1')).toBe('unknown');

    const paid = await find(second);
    expect(await store.findByPaymentId(merchantId, 'p-1', timeoutMs)).toStrictEqual({ kind: 'found', order: paid });
    const concurrent = await Promise.all(
      [1, 2, 3].flatMap(() => [
        foundBy(merchantId, 'p-1'),
        foundBy(merchantId, 'p-2'),
        foundBy(otherMerchantId, 'p-1'),
      ]),
    );
    expect(concurrent).toEqual([1, 2, 3].flatMap(() => ['second', 'unknown', 'unknown']));
  });

  it('lookups find nothing for unknown ids and store nothing', async () => {
    const { store, merchantIds, countOrders } = opened();
    const [merchantId] = await merchantIds();

    expect(await store.findByOrderId(merchantId, 'never sent', timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await store.findByServiceOrderId(merchantId, serviceOrderIdMax - 1, timeoutMs)).toStrictEqual({
      kind: 'unknown',
    });
    expect(await store.findByToken(createOrderToken(merchantId, randomBytes), timeoutMs)).toStrictEqual({
      kind: 'unknown',
    });
    expect(await countOrders(merchantId)).toBe(0);
  });

  it.each(Object.entries(naughtyTexts))('lookups find an order whose order_id is %s', async (_, text) => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const order = sampleOrder(merchantId, { order_id: text });
    await create(order);

    expect(await store.findByOrderId(merchantId, text, timeoutMs)).toStrictEqual({ kind: 'found', order });
    expect(await store.findByOrderId(merchantId, `${text} `, timeoutMs)).toStrictEqual({ kind: 'unknown' });
  });
}
