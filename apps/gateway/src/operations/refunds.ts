import type { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { CheckoutSystem, Merchant } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { formatAmount } from '@order-gateway/domain/money';
import {
  type CheckoutPayment,
  type Dispute,
  decideRefund,
  decideReportedDispute,
  decideReportedRefund,
  formatOptionalTime,
  formatTime,
  isOfPayment,
  isSameDispute,
  type Order,
  type OrderKey,
  type PendingRefund,
  type Refund,
  type RefusedPayment,
  type ReversalOutcome,
  refundedHundredths,
  refundNamed,
  statusOf,
} from '@order-gateway/domain/orders';
import {
  parseRefund,
  parseRefundList,
  parseReportedDispute,
  parseReportedRefund,
} from '@order-gateway/domain/payments';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { type Caller, type Deadline, type Members, outcomeOf, type Success } from '../calls/operation.ts';
import { storageFailure } from '../calls/store-failure.ts';
import { pageReversalBytesMax } from '../limits.ts';
import type { Handled, OperationDeps } from './service.ts';
import { changeOrder, findForPayment, findOrder } from './stored-orders.ts';

type Deps = Pick<OperationDeps, 'store'>;

/** Refunds the payment of one of the merchant's own orders, or a part of it. */
export async function createRefund(
  deps: Deps,
  caller: Caller<Merchant>,
  key: OrderKey,
  input: Members,
): Handled<typeof OrderService.method.createRefund> {
  const parsed = parseRefund(input);
  if (!parsed.ok) return parsed;
  const { refundId } = parsed.value;
  const found = await findOrder(deps, caller, key);
  if (!found.ok) return found;
  // If the order is paid after this read, `findPaid` would not ask whether the account of the payment makes refunds.
  if (found.value.order.payment === null) return failed({ kind: 'order_not_paid' });
  const changed = await changeOrder(
    deps,
    caller,
    () => findPaid(deps, caller, found.value.order),
    ({ order, makesRefunds, nowMs }) => decideRefund(order, parsed.value, makesRefunds, nowMs),
  );
  if (!changed.ok) return changed;
  const { order } = changed.value.found;
  const refund = refundNamed(order, caller.account.id, refundId);
  const outcome = changed.value.replayed ? 'replayed' : 'created';
  return success({ body: { refund: refund && refundRecord(refund) }, outcome });
}

/** Finds an order again, with what is needed to refund its payment. */
export function findPaid(deps: Deps, deadline: Deadline, { orderToken, merchantId, payment }: Order) {
  // A payment without a checkout system is refunded by the merchant.
  const reported = { checkoutId: payment?.checkoutId ?? merchantId, paymentId: payment?.paymentId ?? '' };
  return findForPayment(deps, deadline, orderToken, reported);
}

/** Lists the pending refunds that a checkout system has to make. The last page has no cursor. */
export async function listRefunds(
  { store }: Deps,
  caller: Caller<CheckoutSystem>,
  input: Members,
): Handled<typeof CheckoutService.method.listRefunds> {
  const { id } = caller.account;
  const parsed = parseRefundList(id, input);
  if (!parsed.ok) return parsed;
  const { filter, cursorAfter } = parsed.value;
  const listed = await store.listPendingRefunds(id, { ...filter, limit: filter.limit + 1 }, caller.timeLeftMs());
  if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
  const page = listed.refunds.slice(0, filter.limit);
  const last = listed.refunds.length > filter.limit ? page.at(-1) : undefined;
  const body = {
    refunds: page.map(pendingRecord),
    next_cursor: last && cursorAfter(last),
    incomplete: listed.isIncomplete,
  };
  return success({ body, outcome: 'ok' });
}

/** Records a refund that a checkout system made or found at its provider. */
export async function recordRefund(
  deps: Deps,
  caller: Caller<CheckoutSystem>,
  input: Members,
): Handled<typeof CheckoutService.method.recordRefund> {
  const parsed = parseReportedRefund(caller.account.id, input);
  if (!parsed.ok) return parsed;
  const { orderToken, ...report } = parsed.value;
  const { refundId, providerRefundId } = report;
  const recorded = await storeReport(deps, caller, orderToken, report, decideReportedRefund);
  if (!recorded.ok) return recorded;
  const { order, outcome } = recorded.value;
  const ofPayment = order.reversals.refunds.filter((refund) => isOfPayment(refund, report));
  const refund =
    ofPayment.find((candidate) => providerRefundId !== null && candidate.providerRefundId === providerRefundId) ??
    ofPayment.find((candidate) => candidate.reporterId === order.merchantId && candidate.refundId === refundId);
  // The note is between the merchant and the customer.
  return success({ body: { refund: refund && refundRecord({ ...refund, note: null }) }, outcome });
}

/** Records a dispute that a checkout system found at its provider. */
export async function recordDispute(
  deps: Deps,
  caller: Caller<CheckoutSystem>,
  input: Members,
): Handled<typeof CheckoutService.method.recordDispute> {
  const parsed = parseReportedDispute(caller.account.id, input);
  if (!parsed.ok) return parsed;
  const { orderToken, ...report } = parsed.value;
  const recorded = await storeReport(deps, caller, orderToken, report, decideReportedDispute);
  if (!recorded.ok) return recorded;
  const { order, outcome } = recorded.value;
  const dispute = order.reversals.disputes.find((candidate) => isSameDispute(candidate, report));
  return success({ body: { dispute: dispute && disputeRecord(dispute) }, outcome });
}

/** Stores what a checkout system reports about a payment of the order of a payment link. */
async function storeReport<Report extends CheckoutPayment>(
  deps: Deps,
  caller: Caller<CheckoutSystem>,
  orderToken: string,
  report: Report,
  decide: (order: Order, report: Report, refused: RefusedPayment | null, nowMs: number) => ReversalOutcome,
): Promise<Result<{ readonly order: Order; readonly outcome: Success }, Failure>> {
  const changed = await changeOrder(
    deps,
    caller,
    () => findForPayment(deps, caller, orderToken, report),
    ({ order, refused, nowMs }) => decide(order, report, refused, nowMs),
  );
  if (!changed.ok) return changed;
  return success({ order: changed.value.found.order, outcome: outcomeOf(changed.value) });
}

/** Builds the members of an order's record about refunds and disputes. Absent members are `undefined`. */
export function reversalMembers(order: Order) {
  const { refunds, disputes } = order.reversals;
  const refunded = refundedHundredths(order);
  return {
    refunds: refunds.length === 0 ? undefined : refunds.map(refundRecord),
    refunded_amount: refunded === 0n ? undefined : Number(refunded) / 100,
    disputes: disputes.length === 0 ? undefined : disputes.map(disputeRecord),
  };
}

/**
 * Returns how many of the orders of a page fit into a response with their refunds and disputes: at least the first one.
 */
export function fittingCount(records: readonly Partial<ReturnType<typeof reversalMembers>>[]): number {
  let bytes = 0;
  const excess = records.findIndex(({ refunds, disputes }, index) => {
    if (refunds || disputes) bytes += Buffer.byteLength(JSON.stringify([refunds, disputes]));
    return index > 0 && bytes > pageReversalBytesMax;
  });
  return excess < 0 ? records.length : excess;
}

function refundRecord(refund: Refund) {
  return {
    refund_id: refund.refundId,
    ...reversalRecord(refund),
    refund_note: refund.note ?? undefined,
    provider_refund_id: refund.providerRefundId ?? undefined,
    refunded_at: formatOptionalTime(refund.refundedAtMs),
  };
}

function disputeRecord(dispute: Dispute) {
  return { dispute_id: dispute.disputeId, ...reversalRecord(dispute) };
}

function reversalRecord<Kind extends Refund | Dispute>(reversal: Kind) {
  const { paymentId, amount, currency, history } = reversal;
  const { status, atMs, reason } = statusOf<Kind['history'][number]['status']>(reversal);
  return {
    payment_id: paymentId,
    amount: Number(formatAmount(amount)),
    currency,
    status,
    reason: reason ?? undefined,
    created_at: formatTime(history[0]?.atMs ?? atMs),
    updated_at: formatTime(atMs),
  };
}

function pendingRecord({ orderToken, orderId, merchantClientId, mode, createdAtMs, ...refund }: PendingRefund) {
  return {
    order_token: orderToken,
    order_id: orderId,
    merchant_id: merchantClientId,
    mode,
    payment_id: refund.paymentId,
    refund_id: refund.refundId ?? undefined,
    provider_refund_id: refund.providerRefundId ?? undefined,
    amount: Number(formatAmount(refund.amount)),
    currency: refund.currency,
    created_at: formatTime(createdAtMs),
  };
}
