import { type Reversal, statusOf } from '@order-gateway/domain/orders';
import { and, desc, eq, gte, or, type SQL, sql } from 'drizzle-orm';
import { noStatementTimeoutMs, withConnection } from '../../connections/client.ts';
import {
  accounts,
  events,
  isEventOfDelivery,
  isLeaseLive,
  orders,
  type ReversalsJson,
  refusedPayments,
  webhookDeliveries,
} from '../../schema.ts';

/** The columns without customer data. */
const shownColumns = {
  merchantId: orders.merchantId,
  clientId: accounts.clientId,
  merchantName: accounts.name,
  orderId: orders.order_id,
  serviceOrderId: orders.serviceOrderId,
  orderStatus: orders.orderStatus,
  orderAmount: orders.order_amount,
  orderCurrency: orders.order_currency,
  createdAt: orders.createdAt,
  expiresAt: orders.expiresAt,
  paidAt: orders.paidAt,
  paymentId: orders.paymentId,
  reversals: orders.reversals,
  cancelledAt: orders.cancelledAt,
  leaseEndsAt: sql<Date | null>`case when ${isLeaseLive} then ${orders.leaseEndsAt} end`.mapWith(orders.leaseEndsAt),
};

/** An order, its refused payments, refunds and disputes, and its events with their deliveries, oldest first. */
export type OrderHistory = Awaited<ReturnType<typeof findOrderHistories>>[number];

/**
 * Finds the orders with this order_id, service_order_id or order_token, of any merchant, newest first, without customer
 * data. Events are stored for 30 days. Rejects with an error that contains no values.
 */
export function findOrderHistories(url: string, key: string) {
  const options = { url, applicationName: 'order-gateway orders', statementTimeoutMs: noStatementTimeoutMs };
  return withConnection(options, async ({ db }) => {
    const keyConditions: (SQL | undefined)[] = [
      // Lists all merchants, because the primary key begins with the merchant.
      sql`(${orders.merchantId}, ${orders.order_id}) in (select id, ${key}::text from ${accounts})`,
      eq(orders.orderToken, key),
      /^\d{1,15}$/.test(key) ? eq(orders.serviceOrderId, Number(key)) : undefined,
    ];
    const found = await db
      .select(shownColumns)
      .from(orders)
      .innerJoin(accounts, eq(accounts.id, orders.merchantId))
      .where(or(...keyConditions))
      .orderBy(desc(orders.createdAt));
    return Promise.all(
      found.map(async ({ reversals, ...order }) => ({
        order,
        ...shownReversals(reversals),
        refusedPayments: await db
          .select({
            paymentId: refusedPayments.paymentId,
            amount: refusedPayments.amount,
            currency: refusedPayments.currency,
            paidAt: refusedPayments.paidAt,
            code: refusedPayments.code,
            refusedAt: refusedPayments.refusedAt,
            refundedAt: refusedPayments.refundedAt,
          })
          .from(refusedPayments)
          .where(and(eq(refusedPayments.merchantId, order.merchantId), eq(refusedPayments.order_id, order.orderId)))
          .orderBy(refusedPayments.refusedAt),
        events: await db
          .select({
            eventId: events.eventId,
            type: events.type,
            createdAt: events.createdAt,
            delivery: {
              endpointId: webhookDeliveries.endpointId,
              attempts: webhookDeliveries.attempts,
              lastResult: webhookDeliveries.lastResult,
              lastAttemptAt: webhookDeliveries.lastAttemptAt,
              deliveredAt: webhookDeliveries.deliveredAt,
              nextAttemptAt: webhookDeliveries.nextAttemptAt,
            },
          })
          .from(events)
          .leftJoin(webhookDeliveries, isEventOfDelivery)
          .where(
            and(
              eq(events.merchantId, order.merchantId),
              eq(events.order_id, order.orderId),
              gte(events.createdAt, order.createdAt),
            ),
          )
          .orderBy(events.eventId),
      })),
    );
  });
}

/** Returns the refunds and disputes with their current statuses. A merchant's note of a refund may name a customer. */
function shownReversals(reversals: ReversalsJson | null) {
  const { refunds = [], disputes = [] } = reversals ?? {};
  return {
    refunds: refunds.map(({ refundId, providerRefundId, refundedAtMs, ...refund }) => ({
      refundId,
      providerRefundId,
      ...shownReversal(refund),
      refundedAt: refundedAtMs === null ? null : new Date(refundedAtMs),
    })),
    disputes: disputes.map(({ disputeId, ...dispute }) => ({ disputeId, ...shownReversal(dispute) })),
  };
}

type StoredReversal<Status> = Pick<Reversal<Status>, 'paymentId' | 'currency' | 'history'>;

function shownReversal<Status>(reversal: StoredReversal<Status> & { readonly amount: string }) {
  const { paymentId, amount, currency, history } = reversal;
  const { status, atMs, reason } = statusOf(reversal);
  const createdAt = new Date(history[0]?.atMs ?? atMs);
  return { paymentId, amount, currency, status, reason, createdAt, updatedAt: new Date(atMs) };
}
