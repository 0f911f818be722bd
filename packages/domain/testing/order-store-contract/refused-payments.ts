import { expect, it } from 'vitest';
import { decide } from '../../src/orders/order-states.ts';
import { sampleOrder } from '../sample-orders.ts';
import { type OrderStoreSteps, type PayAction, paymentOf, sampleNowMs, timeoutMs } from './order-store-steps.ts';

/** Tests refused payments. */
export function describeRefusedPayments({
  opened,
  created,
  newMerchant,
  find,
  findForPayment,
  act,
  eventsOf,
  expectEvents,
}: OrderStoreSteps): void {
  it('refusePayment stores a refused payment once, with its event, and the order lists it', async () => {
    const merchantId = await newMerchant();
    const [order, otherOrder] = [
      await created(sampleOrder(merchantId, { order_id: 'refusing' })),
      await created(sampleOrder(merchantId, { order_id: 'other' })),
    ];
    const mismatch = (paymentId: string): PayAction => {
      const { payment } = paymentOf(order, paymentId, order.createdAtMs + 1);
      return { kind: 'pay', payment: { ...payment, currency: 'JPY' } };
    };
    expect(await act(order, mismatch('p-1'))).toBe('payment_mismatch');
    expect(await act(order, mismatch('p-1'))).toBe('payment_mismatch');
    expect(await act(order, paymentOf(order, 'p-1'))).toBe('payment_id_conflict');
    expect(await act(otherOrder, paymentOf(otherOrder, 'p-1'))).toBe('payment_id_conflict');
    expect(await act(order, paymentOf(order, 'p-2'))).toBe('changed');
    // The error is the same as before, although other payments are now refused because the order is paid.
    expect(await act(order, mismatch('p-1'))).toBe('payment_mismatch');
    expect(await act(order, paymentOf(order, 'p-3'))).toBe('order_already_paid');

    const { checkoutId, ...reported } = mismatch('p-1').payment;
    const { paymentId, paidAtMs, amount, currency } = reported;
    const { refusedPayments } = await find(order);
    expect(refusedPayments).toStrictEqual([
      {
        checkoutId,
        paymentId,
        paidAtMs,
        amount,
        currency,
        code: 'payment_mismatch',
        refusedAtMs: expect.any(Number),
      },
      {
        checkoutId,
        paymentId: 'p-3',
        paidAtMs: order.createdAtMs,
        amount: order.fields.order_amount,
        currency: order.fields.order_currency,
        code: 'order_already_paid',
        refusedAtMs: expect.any(Number),
      },
    ]);
    expect((await find(otherOrder)).refusedPayments).toStrictEqual([]);
    expect(await findForPayment(order, mismatch('p-1'))).toMatchObject({ isKnown: true, refused: refusedPayments[0] });
    expect(await findForPayment(order, paymentOf(order, 'p-2'))).toMatchObject({ isKnown: true, refused: null });
    expect(await findForPayment(otherOrder, mismatch('p-1'))).toMatchObject({ isKnown: true, refused: null });
    await expectEvents(order, [
      'order.payment_refused refusing',
      'order.paid refusing',
      'order.payment_refused refusing',
    ]);
  });

  it('refusePayment writes nothing if the order has left the expected state', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const { payment } = paymentOf(order, 'p-1');
    const stale = decide(order, { kind: 'pay', payment: { ...payment, currency: 'JPY' } }, sampleNowMs);
    await act(order, { kind: 'cancel' });
    if (!stale.ok || stale.value.kind !== 'refuse') throw new Error('decide did not refuse the payment');
    expect(await opened().store.refusePayment(stale.value.refusal, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect((await find(order)).refusedPayments).toStrictEqual([]);
    expect(await eventsOf(order)).toHaveLength(1);
  });
}
