import { formatAmount } from '@order-gateway/domain/money';
import {
  type ChangeOutcome,
  isHeldBy,
  type LeaseEnd,
  type Order,
  type OrderChange,
  type OrderPayment,
  type OrderStore,
  type PaymentIdentity,
  type PaymentRefusal,
  pendingRefundsOf,
  type ReversalChange,
  type Transition,
  transitions,
} from '@order-gateway/domain/orders';
import { and, eq, isNotNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from '../../batches/batch-queue.ts';
import {
  type Closable,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
  plansEveryRun,
} from '../../connections/client.ts';
import { isDuplicate } from '../../connections/errors.ts';
import { queueLimits } from '../../queue-limits.ts';
import { endedNow, isEndedAttempt, isExpired, isLeaseLive, orders, payments } from '../../schema.ts';
import type { ExpireOrder } from '../find/expired-orders.ts';
import { reversalsAsJson } from '../order-rows.ts';
import {
  changeOrder,
  changeReversals,
  expireOrderNow,
  isOrderOf,
  nowInMs,
  type OrderFunction,
  refusePayment,
} from '../plpgsql-functions.ts';

/** The part of an order store that changes orders. */
export interface OrderChanges
  extends Pick<
      OrderStore,
      'change' | 'refusePayment' | 'changeReversals' | 'startPayment' | 'endPayment' | 'expireNow'
    >,
    Closable {
  readonly expireOrder: ExpireOrder;
}

type Statements = ReturnType<typeof prepareStatements>;

/** Changes one order. Returns a row if the order was changed. */
type Change = (statements: Statements) => Promise<readonly ChangedRow[]>;

interface ChangedRow {
  readonly order_id?: string;
  readonly leaseEndsAt?: Date | null;
}

type RowOutcome = ChangeOutcome<Partial<LeaseEnd>>;

/**
 * Opens the part of an order store that changes orders. One transaction stores a change, its event and its deliveries.
 */
export function openOrderChanges(options: DatabaseOptions): OrderChanges {
  const open = (name: string) =>
    openClient({ ...options, applicationName: `order-gateway ${name}`, settings: plansEveryRun }, prepareStatements);
  const openQueue = (name: 'changes' | 'expiries') =>
    createBatchQueue<DatabaseClient<Statements>, Change, RowOutcome>({
      ...options,
      name,
      clients: Array.from({ length: queueLimits[name].connections }, () => open(name)),
      ...queueLimits[name],
      async run(client, [change]) {
        if (change === undefined) return [];
        try {
          const [row] = await client.run(change);
          if (row === undefined) return [{ kind: 'conflict' }];
          return [{ kind: 'changed', ...(row.leaseEndsAt && { endsAtMs: row.leaseEndsAt.getTime() }) }];
        } catch (error) {
          // Another call has stored this payment in the meantime: for another order, or as refused for this one.
          if (isDuplicate(error)) return [{ kind: 'conflict' }];
          throw error;
        }
      },
    });
  const changes = openQueue('changes');
  const expiries = openQueue('expiries');
  /**
   * Makes a change and stores the payment of a checkout system, so that no other order can have that payment. If the
   * order and the payment may be on different servers, the payment is stored first. If the change does not follow, for
   * example because the process dies, the next report of the payment finds it stored for this order
   * (docs/decisions/095-a-merchants-calls-use-its-server.md).
   */
  const withPayment =
    (kind: 'change' | 'refuse', payment: PaymentIdentity | null, values: Values): Change =>
    async (statements) => {
      const { withoutPayment, withPayment } = statements[kind];
      const hasNote = values.note !== null;
      const isReported = payment !== null && payment.checkoutId !== null;
      if (isReported && !options.server) {
        return rowsOf(await (hasNote ? statements.changeWithNote : withPayment).execute(values));
      }
      if (isReported && !(await storePayment(statements, values))) return [];
      const changed = rowsOf(await withoutPayment.execute(values));
      if (hasNote && changed.length > 0) await storeNote(statements, values);
      return changed;
    };
  const stateChange = (
    { from, to, event }: Transition,
    order: Order,
    details: Pick<OrderChange, 'paidOn' | 'note'> = {},
  ): Change => {
    const { payment, cancelledAtMs } = order;
    return withPayment('change', payment, {
      ...keyOf(order),
      from_status: from,
      to_status: to,
      event_type: event,
      ...paymentValues(payment, details),
      cancelled_at: cancelledAtMs === null ? null : timeText(cancelledAtMs),
    });
  };
  return {
    change: ({ transition, order, ...details }, timeoutMs) =>
      changes.add(stateChange(transition, order, details), timeoutMs),
    refusePayment: (refusal, timeoutMs) =>
      changes.add(withPayment('refuse', refusal.payment, refusalValues(refusal)), timeoutMs),
    changeReversals(change, timeoutMs) {
      const values = reversalValues(change);
      return changes.add(async (statements) => rowsOf(await statements.changeReversals.execute(values)), timeoutMs);
    },
    async startPayment(order, attempt, leaseSeconds, timeoutMs) {
      const values = { ...keyOf(order), ...attempt, leaseSeconds };
      const outcome = await changes.add(({ startPayment }) => startPayment.execute(values), timeoutMs);
      return outcome.kind === 'changed' ? { endsAtMs: 0, ...outcome } : outcome;
    },
    expireNow: (order, timeoutMs) =>
      changes.add(async ({ expireNow }) => rowsOf(await expireNow.execute(keyOf(order))), timeoutMs),
    endPayment(order, attempt, timeoutMs) {
      const values = { ...keyOf(order), ...attempt, wasHeld: isHeldBy(order.lease, attempt) };
      return changes.add(({ endPayment }) => endPayment.execute(values), timeoutMs);
    },
    expireOrder: (order, timeoutMs) => expiries.add(stateChange(transitions.expire, order), timeoutMs),
    async close() {
      await Promise.all([changes.close(), expiries.close()]);
    },
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

type Values = Readonly<Record<string, string | number | null>>;

function keyOf({ merchantId, fields }: Order) {
  return { merchant_id: merchantId, order_id: fields.order_id };
}

function paymentValues(payment: OrderPayment | null, { paidOn, note }: Pick<OrderChange, 'paidOn' | 'note'>) {
  return {
    checkout_id: payment?.checkoutId ?? null,
    payment_id: payment?.paymentId ?? null,
    paid_at: payment === null ? null : timeText(payment.paidAtMs),
    paid_on: paidOn ?? null,
    note: note ?? null,
  };
}

/** The parameters of {@link refusePayment}. */
function refusalValues({ order, payment }: PaymentRefusal): Values {
  const { amount, currency, code } = payment;
  return {
    ...keyOf(order),
    from_status: order.orderStatus,
    ...paymentValues(payment, payment),
    amount: formatAmount(amount),
    currency,
    code,
  };
}

/** The parameters of {@link changeReversals}. */
export function reversalValues({ order, events, refused }: ReversalChange): Values {
  const { merchantId, serviceOrderId, reversals } = order;
  const pending = pendingRefundsOf(order).map((refund) => ({
    merchant_id: merchantId,
    service_order_id: serviceOrderId,
    created_at: timeText(refund.createdAtMs),
    order_id: refund.orderId,
    order_token: refund.orderToken,
    checkout_id: refund.checkoutId,
    payment_id: refund.paymentId,
    refund_id: refund.refundId,
    provider_refund_id: refund.providerRefundId,
    amount: formatAmount(refund.amount),
    currency: refund.currency,
  }));
  return {
    ...keyOf(order),
    service_order_id: serviceOrderId,
    reversals: reversalsAsJson(reversals),
    new_events: JSON.stringify(events.map(({ type, atMs }) => ({ type, at: timeText(atMs) }))),
    pending: JSON.stringify(pending),
    refused_checkout_id: refused?.checkoutId ?? null,
    refused_payment_id: refused?.paymentId ?? null,
    refunded_at: refused?.refundedAtMs ? timeText(refused.refundedAtMs) : null,
  };
}

/** Stores a payment for an order. Returns `false` if the payment is stored for another order. */
async function storePayment({ storePayment, findStoredPayment }: Statements, values: Values): Promise<boolean> {
  const stored = await storePayment.execute(values);
  return stored.length > 0 || (await findStoredPayment.execute(values)).length > 0;
}

/**
 * Stores the note of a payment that paid an order. An erasure deletes the notes of paid orders before it marks the
 * orders as erased, so an order that is marked afterwards may have been erased before the note was stored.
 */
async function storeNote({ storeNote, findErased }: Statements, values: Values): Promise<void> {
  await storeNote.execute(values);
  if ((await findErased.execute(values)).length > 0) await storeNote.execute({ ...values, note: null });
}

/** Converts the result of a function that changes orders: returns an empty row if the function changed an order. */
function rowsOf(rows: readonly { readonly changed: number }[]): readonly ChangedRow[] {
  return rows.filter(({ changed }) => changed > 0).map(() => ({}));
}

function prepareStatements(db: PostgresJsDatabase) {
  return { ...prepareChanges(db), ...preparePayments(db), ...prepareLeases(db) };
}

const isOrder = isOrderOf(sql.placeholder);
const payment = sql`${sql.placeholder('checkout_id')}::bigint, ${sql.placeholder('payment_id')}::text`;
const paymentOfOrder = sql`${payment}, ${sql.placeholder('merchant_id')}::bigint, ${sql.placeholder('order_id')}::text`;
const paidOn = sql`${sql.placeholder('paid_on')}::date`;
const note = sql`${sql.placeholder('note')}::text`;

function prepareChanges(db: PostgresJsDatabase) {
  const changedCount = sql<number>`changed`.as('changed');
  // If the payment is already stored, the insert violates a unique key, and the statement changes nothing.
  const recordedWith = (note: SQL) =>
    db
      .$with('recorded')
      .as(
        db
          .insert(payments)
          .select(sql`select ${paymentOfOrder}, ${paidOn}, ${note} from called where changed > 0`)
          .returning({ paymentId: payments.paymentId }),
      );
  const change = ({ name, call }: OrderFunction) => {
    const called = db.$with('called').as(db.select({ changed: changedCount }).from(call));
    return {
      withoutPayment: db.select({ changed: changedCount }).from(call).prepare(name),
      withPayment: db
        .with(called, recordedWith(sql`null`))
        .select({ changed: called.changed })
        .from(called)
        .prepare(`${name}_with_payment`),
    };
  };
  // An erasure of the order comes before this lock, or waits for the end of the statement.
  const isErased = sql<boolean>`${isNotNull(orders.erasedDigest)}`.as('is_erased');
  const locked = db.$with('locked').as(db.select({ isErased }).from(orders).where(isOrder).for('update'));
  // A subquery in the list of columns runs once the order is locked.
  const changedLocked = sql<number>`(select ${changedCount} from ${changeOrder.call})`.as('changed');
  const called = db.$with('called').as(db.select({ changed: changedLocked, isErased: locked.isErased }).from(locked));
  return {
    change: change(changeOrder),
    changeWithNote: db
      .with(locked, called, recordedWith(sql`case when not is_erased then ${note} end`))
      .select({ changed: called.changed })
      .from(called)
      .prepare('change_order_with_note'),
    refuse: change(refusePayment),
    expireNow: change(expireOrderNow).withoutPayment,
    changeReversals: change(changeReversals).withoutPayment,
  };
}

/** Prepares the statements that store payments separately from the changes of their orders. */
function preparePayments(db: PostgresJsDatabase) {
  return {
    storePayment: db
      .insert(payments)
      .select(sql`select ${paymentOfOrder}, ${paidOn}, null`)
      .onConflictDoNothing()
      .returning({ paymentId: payments.paymentId })
      .prepare('store_payment'),
    findStoredPayment: db
      .select({ paymentId: payments.paymentId })
      .from(payments)
      .where(
        sql`(${payments.checkoutId}, ${payments.paymentId}, ${payments.merchantId}, ${payments.order_id}) = (${paymentOfOrder})`,
      )
      .prepare('find_stored_payment'),
    storeNote: db
      .update(payments)
      .set({ note })
      .where(sql`(${payments.checkoutId}, ${payments.paymentId}) = (${payment})`)
      .prepare('store_note'),
    findErased: db
      .select({ order_id: orders.order_id })
      .from(orders)
      .where(and(isOrder, isNotNull(orders.erasedDigest)))
      .prepare('find_erased'),
  };
}

function prepareLeases(db: PostgresJsDatabase) {
  const isLeaseOfAttempt = sql`(${orders.leaseCheckoutId} = ${sql.placeholder('checkoutId')} and ${orders.leaseAttemptId} = ${sql.placeholder('attemptId')})`;
  const attempt = [sql`${sql.placeholder('checkoutId')}::bigint`, sql`${sql.placeholder('attemptId')}::text`] as const;
  const hasEnded = isEndedAttempt(...attempt);
  return {
    startPayment: db
      .update(orders)
      .set({
        leaseCheckoutId: sql`${sql.placeholder('checkoutId')}`,
        leaseAttemptId: sql`${sql.placeholder('attemptId')}`,
        leaseEndsAt: sql`greatest(${orders.leaseEndsAt}, ${nowInMs} + ${sql.placeholder('leaseSeconds')}::int * interval '1 second')`,
      })
      .where(
        and(
          isOrder,
          eq(orders.orderStatus, transitions.pay.from),
          sql`(${isExpired}) is not true`,
          sql`(${isLeaseOfAttempt} or ${isLeaseLive} is not true)`,
          sql`${hasEnded} is not true`,
        ),
      )
      .returning({ leaseEndsAt: orders.leaseEndsAt })
      .prepare('start_payment'),
    endPayment: db
      .update(orders)
      .set(endedNow(...attempt))
      .where(
        and(
          isOrder,
          eq(orders.orderStatus, transitions.pay.from),
          isLeaseOfAttempt,
          sql`${isLeaseLive} = ${sql.placeholder('wasHeld')}::boolean`,
          sql`(${isLeaseLive} or ${hasEnded} is not true)`,
        ),
      )
      .returning({ order_id: orders.order_id })
      .prepare('end_payment'),
  };
}
