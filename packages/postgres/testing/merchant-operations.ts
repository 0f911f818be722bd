import { decideRefund, transitions } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type postgres from 'postgres';
import { openOrderStore } from '../src/order-store.ts';
import { openWebhookEndpoints } from '../src/webhooks/webhook-endpoints.ts';
import { createMerchantId, createOrder } from './contract-store.ts';
import { testPatience } from './patience.ts';
import type { RecordedRun } from './recording-proxy.ts';

const enoughMs = 20_000;

/** Whether a statement concerns merchants, rather than the ids in use or the servers. */
export function isOfMerchant({ text }: RecordedRun): boolean {
  return !/max\(service_order_id\)|pg_dist_/.test(text);
}

/**
 * Runs, one after the other, every operation on one order or on one merchant's orders, and the lists of endpoints and
 * deliveries. Creates a merchant for them.
 */
export async function doMerchantOperations(url: string, sql: postgres.Sql, isDistributed: boolean): Promise<void> {
  const merchantId = await createMerchantId(sql);
  const checkoutId = await createMerchantId(sql);
  const store = openOrderStore({ url, isDistributed, patience: testPatience });
  const endpoints = openWebhookEndpoints({ url, patience: testPatience });
  const done = async (outcome: PromiseLike<{ readonly kind: string }>) => {
    const { kind } = await outcome;
    if (['unavailable', 'deadline_exceeded', 'overloaded'].includes(kind)) throw new Error(kind);
  };
  const create = (order_id: string) => createOrder(store, sampleOrder(merchantId, { order_id }));
  try {
    const order = await create('first');
    await done(store.create(sampleOrder(merchantId, { order_id: 'first' }), enoughMs));
    await done(store.findByOrderId(merchantId, 'first', enoughMs));
    await done(store.findByServiceOrderId(merchantId, order.serviceOrderId, enoughMs));
    await done(store.findByPaymentId(merchantId, 'p-1', enoughMs));
    await done(store.findByToken(order.orderToken, enoughMs));
    await done(store.findForPage(order.orderToken, enoughMs));
    const payment = { checkoutId, paymentId: 'p-1', paidAtMs: order.createdAtMs };
    await done(store.findForPayment(order.orderToken, payment, enoughMs));
    await done(store.list(merchantId, { limit: 1 }, enoughMs));
    await done(store.list(merchantId, { limit: 1, status: 'UN_PAID' }, enoughMs));
    await done(store.list(merchantId, { limit: 1, metadata: { key: 'value' } }, enoughMs));
    await done(store.list(merchantId, { limit: 1, currency: 'EUR' }, enoughMs));
    await done(store.countByDay(merchantId, 0, enoughMs));
    const attempt = { checkoutId, attemptId: 'a-1' };
    await done(store.startPayment(order, attempt, 60, enoughMs));
    await done(store.endPayment(order, attempt, enoughMs));
    const refused = {
      ...payment,
      amount: order.fields.order_amount,
      currency: 'USD',
      code: 'payment_mismatch',
    } as const;
    await done(store.refusePayment({ order, payment: { ...refused, paymentId: 'p-0' } }, enoughMs));
    await done(store.findForPayment(order.orderToken, { ...payment, paymentId: 'p-0' }, enoughMs));
    await done(
      store.change({ transition: transitions.pay, order: { ...order, orderStatus: 'PAID', payment } }, enoughMs),
    );
    const refund = decideRefund(
      { ...order, orderStatus: 'PAID', payment },
      { refundId: 'r-1', amount: undefined, note: undefined },
      true,
      order.createdAtMs,
    );
    if (!refund.ok || refund.value.kind !== 'reverse') throw new Error('the order can not be refunded');
    await done(store.changeReversals(refund.value.change, enoughMs));
    const cancelled = { ...(await create('second')), orderStatus: 'CANCELLED', cancelledAtMs: Date.now() } as const;
    await done(store.change({ transition: transitions.cancel, order: cancelled }, enoughMs));
    await done(store.expireNow(await create('third'), enoughMs));
    const feed = await store.listEvents(merchantId, { limit: 1 }, enoughMs);
    await done(
      store.listEvents(merchantId, { limit: 1, after: 'scannedTo' in feed ? feed.scannedTo : undefined }, enoughMs),
    );
    await done(store.listEvents(merchantId, { limit: 1, types: ['order.paid'], orderId: 'first' }, enoughMs));
    await endpoints.list(merchantId);
    await endpoints.pageOfDeliveries(merchantId, 'we_1', { limit: 1 });
    await endpoints.pageOfDeliveries(merchantId, 'we_1', { orderId: 'first', limit: 1 });
  } finally {
    await Promise.all([store.close(), endpoints.close()]);
  }
}
