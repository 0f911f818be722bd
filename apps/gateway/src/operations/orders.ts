import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Merchant, MerchantMode } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { type BaseUrl, createOrderToken, paymentLink } from '@order-gateway/domain/links';
import { formatAmount } from '@order-gateway/domain/money';
import {
  decide,
  decideManualPayment,
  expiryOfNewOrder,
  expiryRangeError,
  formatOptionalTime,
  formatTime,
  isManual,
  newOrder,
  type Order,
  type OrderInput,
  type OrderKey,
  orderDifference,
  type ParsedOrder,
  parseOrder,
  parseOrderKey,
  parseOrderList,
  parseOrderLookupKey,
  type RefusedPayment,
  refundedAtOf,
  reportableUntil,
} from '@order-gateway/domain/orders';
import { type ManualPaymentInput, parseManualPayment } from '@order-gateway/domain/payments';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { checksumFailure } from '@order-gateway/domain/signing';
import { type Caller, type Operation, outcomeOf } from '../calls/operation.ts';
import { storageFailure } from '../calls/store-failure.ts';
import { createRefund, fittingCount, reversalMembers } from './refunds.ts';
import { type Handlers, type OperationDeps, operationsOf } from './service.ts';
import { type ChangedOrder, changeOrder, type FoundOrder, findForPayment, findOrder } from './stored-orders.ts';

type CreateOrderDeps = Pick<OperationDeps, 'store' | 'randomBytes' | 'now' | 'erasureKeys'>;

interface CreatedOrder {
  readonly order: Order;
  /** Whether the same order was stored before. */
  readonly replayed: boolean;
}

export function orderOperations(deps: CreateOrderDeps & RecordDeps): Operation[] {
  const recordOf = (order: Order, { account }: Caller<Merchant>) => orderRecord(order, account.mode, deps);
  const replyTo = (changed: Result<ChangedOrder<FoundOrder>, Failure>, caller: Caller<Merchant>) => {
    if (!changed.ok) return changed;
    const { order } = changed.value.found;
    return success({ body: { order: recordOf(order, caller) }, outcome: outcomeOf(changed.value) });
  };
  const handlers: Handlers<typeof OrderService.method> = {
    async createOrder(members, caller: Caller<Merchant>) {
      const created = await createOrder(deps, caller, members);
      if (!created.ok) return created;
      const { order, replayed } = created.value;
      const body = orderResponse(order, deps.baseUrl());
      return success({ body, outcome: replayed ? 'replayed' : 'created' });
    },

    async getOrder(members, caller: Caller<Merchant>) {
      const key = parseOrderLookupKey(members);
      if (!key.ok) return key;
      const found = await findOrder(deps, caller, key.value);
      if (!found.ok) return found;
      return success({ body: { order: recordOf(found.value.order, caller) }, outcome: 'ok' });
    },

    async cancelOrder(members, caller: Caller<Merchant>) {
      const key = parseOrderKey(members);
      if (!key.ok) return key;
      return replyTo(await cancelOrder(deps, caller, key.value), caller);
    },

    async recordManualPayment(members, caller: Caller<Merchant>) {
      const key = parseOrderKey(members);
      if (!key.ok) return key;
      return replyTo(await recordManualPayment(deps, caller, key.value, members), caller);
    },

    async createRefund(members, caller: Caller<Merchant>) {
      const key = parseOrderKey(members);
      return key.ok ? createRefund(deps, caller, key.value, members) : key;
    },

    /**
     * Lists orders, newest first. The last page has no cursor. With a filter by metadata or currency, or if orders have
     * many refunds, a page can have fewer orders than its limit.
     */
    async listOrders(members, caller: Caller<Merchant>) {
      const { id } = caller.account;
      const parsed = parseOrderList(id, members);
      if (!parsed.ok) return parsed;
      const { filter, cursorAfter } = parsed.value;
      const listed = await deps.store.list(id, { ...filter, limit: filter.limit + 1 }, caller.timeLeftMs());
      if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
      const page = listed.orders.slice(0, filter.limit).map((order) => recordOf(order, caller));
      const orders = page.slice(0, fittingCount(page));
      const last = listed.orders.length > orders.length ? listed.orders[orders.length - 1] : undefined;
      const end = last ?? listed.scannedTo;
      return success({ body: { orders, next_cursor: end && cursorAfter(end) }, outcome: 'ok' });
    },
  };
  return operationsOf(OrderService, handlers, { createOrder: strictErrors });
}

function strictErrors(input: OrderInput) {
  const parsed = parseOrder(input, { isStrict: true });
  return parsed.ok ? [] : parsed.failure;
}

/** Creates an order, or finds the same order if it was stored before. */
export async function createOrder(
  deps: CreateOrderDeps,
  caller: Caller<Merchant>,
  input: OrderInput,
): Promise<Result<CreatedOrder, Failure>> {
  const { account: merchant, clientSecret } = caller;
  const nowMs = deps.now();
  const parsed = parseOrder(input, caller);
  if (!parsed.ok) return failed({ kind: 'invalid_order', errors: parsed.failure });
  const { fields, expiresAtMs, metadata = null } = parsed.value;
  const wrongChecksum = checksumFailure(fields, clientSecret, merchant.checksumMode);
  if (wrongChecksum !== undefined) return failed(wrongChecksum);
  const rangeError = expiresAtMs === undefined ? undefined : expiryRangeError(expiresAtMs, nowMs);
  if (rangeError !== undefined) {
    // The request may be a replay that is sent when the stored order is near or past its expiry.
    const found = await deps.store.findByOrderId(merchant.id, fields.order_id, caller.timeLeftMs());
    if (found.kind === 'found') return replayOf(deps, found.order, parsed.value);
    return failed(
      found.kind === 'unknown' ? { kind: 'invalid_order', errors: [rangeError] } : storageFailure(found.kind),
    );
  }
  const order = newOrder(fields, {
    merchantId: merchant.id,
    orderToken: createOrderToken(merchant.id, deps.randomBytes),
    createdAtMs: nowMs,
    expiresAtMs: expiryOfNewOrder(expiresAtMs, merchant, nowMs),
    metadata,
  });
  caller.concerns(order);
  const outcome = await deps.store.create(order, caller.timeLeftMs());
  if ('order' in outcome) caller.concerns(outcome.order);
  switch (outcome.kind) {
    case 'created':
      return success({ order: outcome.order, replayed: false });
    case 'exists':
      return replayOf(deps, outcome.order, parsed.value);
    case 'overloaded':
      return failed(storageFailure(outcome.kind));
    default:
      return failed({ kind: outcome.kind, orderMayExist: true });
  }
}

/** Returns the stored order if it equals the order that was sent, and otherwise the names of the fields that differ. */
function replayOf({ erasureKeys }: CreateOrderDeps, order: Order, sent: ParsedOrder): Result<CreatedOrder, Failure> {
  const fields = orderDifference(order, sent, erasureKeys);
  return fields.length === 0 ? success({ order, replayed: true }) : failed({ kind: 'order_id_conflict', fields });
}

/** Cancels one of the merchant's own orders, unless it is paid or expired. */
export function cancelOrder(
  deps: Pick<OperationDeps, 'store' | 'now'>,
  caller: Caller<Merchant>,
  key: OrderKey,
): Promise<Result<ChangedOrder<FoundOrder>, Failure>> {
  return changeOrder(
    deps,
    caller,
    () => findOrder(deps, caller, key),
    ({ order }) => decide(order, { kind: 'cancel' }, deps.now()),
  );
}

/** Records a payment of one of the merchant's own orders that reached the merchant outside any checkout system. */
async function recordManualPayment(
  deps: Pick<OperationDeps, 'store'>,
  caller: Caller<Merchant>,
  key: OrderKey,
  input: ManualPaymentInput,
): Promise<Result<ChangedOrder<FoundOrder>, Failure>> {
  const parsed = parseManualPayment(input);
  if (!parsed.ok) return parsed;
  const payment = { ...parsed.value, checkoutId: caller.account.id };
  const found = await findOrder(deps, caller, key);
  if (!found.ok) return found;
  const { orderToken } = found.value.order;
  return changeOrder(
    deps,
    caller,
    () => findForPayment(deps, caller, orderToken, payment),
    ({ order, isKnown, storedPaidOn, nowMs }) =>
      decideManualPayment(order, { ...payment, isKnown, storedPaidOn }, nowMs),
  );
}

export type OrderResponse = ReturnType<typeof orderResponse>;
export type OrderRecord = ReturnType<typeof orderRecord>;

/** Builds the response to a creation: its six fields, in the API's order. */
export function orderResponse(order: Order, baseUrl: BaseUrl) {
  return {
    service_order_id: order.serviceOrderId,
    created_at: formatTime(order.createdAtMs),
    order_id: order.fields.order_id,
    order_status: order.orderStatus,
    order_token: order.orderToken,
    payment_link: paymentLink(baseUrl, order.orderToken),
  };
}

/** The values that the representation of an order depends on. */
export type RecordDeps = Pick<OperationDeps, 'baseUrl' | 'lateDays'>;

/**
 * Builds the representation of an order for all responses except those to a creation. It does not contain the
 * customer's data. Absent fields are `undefined`.
 */
export function orderRecord(order: Order, mode: MerchantMode, { baseUrl, lateDays }: RecordDeps) {
  const { fields, payment, lease, refusedPayments } = order;
  return {
    ...orderResponse(order, baseUrl()),
    mode,
    // An amount has at most 15 digits, and a double preserves all of them (`DBL_DIG` in C).
    order_amount: Number(formatAmount(fields.order_amount)),
    order_currency: fields.order_currency,
    order_note: fields.order_note,
    service_type: fields.service_type,
    order_expires_at: formatOptionalTime(order.expiresAtMs),
    paid_at: formatOptionalTime(payment?.paidAtMs),
    payment_id: payment?.paymentId,
    payment_method: isManual(order) ? 'manual' : undefined,
    cancelled_at: formatOptionalTime(order.cancelledAtMs),
    payment_in_progress_until: formatOptionalTime(lease?.isLive ? lease.endsAtMs : null),
    refused_payments:
      refusedPayments.length === 0 ? undefined : refusedPayments.map((refused) => refusedPaymentRecord(order, refused)),
    ...reversalMembers(order),
    payable_until: formatOptionalTime(order.orderStatus === 'EXPIRED' ? reportableUntil(order, lateDays()) : null),
    metadata: order.metadata ?? undefined,
  };
}

function refusedPaymentRecord(order: Order, refused: RefusedPayment) {
  const { paymentId, amount, currency, paidAtMs, code, refusedAtMs } = refused;
  return {
    payment_id: paymentId,
    amount: Number(formatAmount(amount)),
    currency,
    paid_at: formatTime(paidAtMs),
    code,
    refused_at: formatTime(refusedAtMs),
    refunded_at: formatOptionalTime(refundedAtOf(order, refused)),
  };
}
