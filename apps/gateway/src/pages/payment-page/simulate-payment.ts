import { hash } from 'node:crypto';
import { randomBase62 } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import {
  type Decision,
  decide,
  expiryOf,
  type LinkedOrder,
  type Order,
  refusedPaymentsShown,
  startFailure,
} from '@order-gateway/domain/orders';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Deadline } from '../../calls/operation.ts';
import { storageFailure } from '../../calls/store-failure.ts';
import type { OperationDeps } from '../../operations/service.ts';
import { changeOrder, findPaymentLink, linkNotFound } from '../../operations/stored-orders.ts';

type SimulationDeps = Pick<OperationDeps, 'store' | 'now' | 'randomBytes'>;
type Found = Result<LinkedOrder, Failure>;

/** The outcomes that the form of a test order's page can simulate. */
export const simulatedOutcomes = ['pay', 'decline', 'expire', 'pay_late'] as const;

/**
 * Simulates the outcome of a payment of a test order, without moving money. `pay` pays the order in full, and paying
 * again returns the paid order. `decline` declines the payment and changes nothing. `expire` makes the order expire
 * immediately. `pay_late` makes an unpaid order expire and reports one payment, which is refused. Fails with
 * `not_found` for the orders of live and disabled merchants, and with `invalid_request` for any other outcome.
 */
export async function simulatePayment(
  deps: SimulationDeps,
  deadline: Deadline,
  orderToken: string,
  outcome: string | null,
): Promise<Found> {
  const find = () => findPaymentLink(deps.store.findForPage, deadline, orderToken);
  const found = await find();
  if (!found.ok) return found;
  const { order, merchant } = found.value;
  if (merchant.mode !== 'test' || merchant.isDisabled) return failed(linkNotFound);
  switch (outcome) {
    case 'pay': {
      const paid = await changeOrder(deps, deadline, find, ({ order }) => payInTime(deps, order));
      if (paid.ok) return success(paid.value.found);
      return paid.failure.kind === 'order_already_paid' ? find() : paid;
    }
    case 'decline': {
      const failure = startFailure(order, null, deps.now());
      return failure === undefined ? found : failed(failure);
    }
    case 'expire':
      return expireNow(deps, deadline, find);
    case 'pay_late': {
      const expired = await expireNow(deps, deadline, find);
      const isClosed = expired.ok || /^order_(already_paid|cancelled)$/.test(expired.failure.kind);
      if (!isClosed) return expired;
      const refused = await changeOrder(deps, deadline, find, ({ order }) => payTooLate(deps, order));
      return refused.ok ? success(refused.value.found) : refused;
    }
    default: {
      const message = `must be one of ${simulatedOutcomes.join(', ')}`;
      return failed({ kind: 'invalid_request', errors: [{ field: 'outcome', code: 'not_allowed', message }] });
    }
  }
}

function payInTime(deps: SimulationDeps, order: Order): Result<Decision, Failure> {
  const nowMs = deps.now();
  const failure = startFailure(order, null, nowMs);
  if (failure !== undefined) return failed(failure);
  // Uses a time before the expiry, because the clock of the database decides whether the order has expired.
  const paidAtMs = Math.min(nowMs, (expiryOf(order) ?? Number.POSITIVE_INFINITY) - 1);
  return pay(deps, order, paidAtMs, `test_${randomBase62(24, deps.randomBytes)}`);
}

function payTooLate(deps: SimulationDeps, order: Order): Result<Decision, Failure> {
  // Anyone who has the link can send the form, so an order gets at most one simulated refused payment. The id of the
  // payment is always the same, so that the store rejects a second one that arrives at the same time.
  const paymentId = `test_${hash('sha256', order.orderToken).slice(0, 24)}`;
  // With as many refused payments as a read shows, the simulated one may be older than those.
  const earlier =
    order.refusedPayments.find(({ checkoutId }) => checkoutId === null) ??
    order.refusedPayments[refusedPaymentsShown - 1];
  if (earlier !== undefined) return failed({ kind: earlier.code });
  // The expiry of an expired order may lie ahead of the gateway's clock, but not that of the database.
  const earliestMs = order.orderStatus === 'EXPIRED' ? (expiryOf(order) ?? 0) : 0;
  return pay(deps, order, Math.max(deps.now(), earliestMs), paymentId);
}

function pay({ now }: SimulationDeps, order: Order, paidAtMs: number, paymentId: string): Result<Decision, Failure> {
  const { order_amount: amount, order_currency: currency } = order.fields;
  const payment = { checkoutId: null, paymentId, paidAtMs, amount, currency, isKnown: false, refused: null };
  return decide(order, { kind: 'pay', payment }, now());
}

async function expireNow(
  { store, now }: SimulationDeps,
  deadline: Deadline,
  find: () => Promise<Found>,
): Promise<Found> {
  for (;;) {
    const found = await find();
    if (!found.ok || found.value.order.orderStatus === 'EXPIRED') return found;
    const failure = startFailure(found.value.order, null, now());
    if (failure !== undefined) return failed(failure);
    const { kind } = await store.expireNow(found.value.order, deadline.timeLeftMs());
    if (kind !== 'changed' && kind !== 'conflict') return failed(storageFailure(kind));
  }
}
