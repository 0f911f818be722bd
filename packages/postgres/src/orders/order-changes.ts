import { formatAmount } from '@gateway/domain/money/money';
import type { Order } from '@gateway/domain/orders/order';
import { type Transition, transitions } from '@gateway/domain/orders/order-states';
import type { ChangeOutcome, OrderStore, StoreOutcome } from '@gateway/domain/orders/order-store';
import { and, eq, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from '../batches/batch-queue.ts';
import { type DatabaseClient, type DatabaseOptions, openClient, plansEveryRun } from '../connections/client.ts';
import { isConcurrencyFailure, isConnectionLost, isDuplicate, redact } from '../connections/errors.ts';
import {
  events,
  isExpired,
  isLeaseLive,
  orders,
  payments,
  refusedPayments,
  webhookDeliveries,
  webhookEndpoints,
} from '../schema.ts';

/** Connections for changes: each waits for a commit, which four share. */
const connections = 4;

/** For expiries that a read stores, as anyone can request a page: they must not slow down changes. */
const expiryConnections = 1;

/** Changes that may wait for a connection: a second's work. Any more are `overloaded` at once. */
const waitingMax = 2_048;

/** Orders that expire, or events that are deleted, in one statement: a tenth of a second's work. */
const sweptMax = 500;

/** Refused payments that a read of an order shows. */
const refusedPaymentsMax = 20;

/** How long events are stored. */
const eventLifetime = sql`interval '30 days'`;

/** What a statement of a background job did. */
export interface Swept {
  readonly count: number;
  /** Whether nothing is left to do. */
  readonly isDone: boolean;
}

/** The part of an order store that changes orders. */
export interface OrderChanges
  extends Pick<OrderStore, 'change' | 'refusePayment' | 'startPayment' | 'endPayment' | 'expireNow'> {
  /** Stores that an order has passed its expiry, with its event. `conflict`: another change was faster. */
  expireOrder(order: Order, timeoutMs: number): Promise<ChangeOutcome>;
  /**
   * Stores that orders have passed their expiry, with their events: at most {@link sweptMax}. Rejects with an error without values;
   * a database that can't be reached has nothing to do.
   */
  expire(): Promise<Swept>;
  /** Deletes events that are older than 30 days, and their deliveries: at most {@link sweptMax}. Rejects as `expire` does. */
  deleteOldEvents(): Promise<Swept>;
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

type Statements = ReturnType<typeof prepareStatements>;

/** A statement that changes one order, and returns a row if it did. */
type Change = (statements: Statements) => Promise<readonly ChangedRow[]>;

interface ChangedRow {
  readonly order_id: string;
  readonly leaseEndsAt?: Date | null;
}

type RowOutcome = StoreOutcome<{ readonly kind: 'changed'; readonly endsAtMs?: number }>;

/** Changes the states of orders in PostgreSQL: the change, its event and its delivery are one statement. */
export function openOrderChanges(options: DatabaseOptions): OrderChanges {
  const open = (name: string) =>
    openClient({ ...options, applicationName: `order-gateway ${name}`, settings: plansEveryRun }, prepareStatements);
  const openQueue = (name: string, connections: number) =>
    createBatchQueue<DatabaseClient<Statements>, Change, RowOutcome>({
      name,
      meter: options.meter,
      clients: Array.from({ length: connections }, () => open(name)),
      batchMax: 1,
      waitingMax,
      async run(client, [change]) {
        if (change === undefined) return [];
        try {
          const [row] = await client.run(change);
          if (row === undefined) return [{ kind: 'conflict' }];
          return [{ kind: 'changed', ...(row.leaseEndsAt && { endsAtMs: row.leaseEndsAt.getTime() }) }];
        } catch (error) {
          // The payment has since paid another order.
          if (isDuplicate(error)) return [{ kind: 'conflict' }];
          throw error;
        }
      },
    });
  const changes = openQueue('changes', connections);
  const expiries = openQueue('expiries', expiryConnections);
  const background = open('changes');
  const sweep = async (statement: 'expire' | 'deleteOldEvents'): Promise<Swept> => {
    try {
      const rows = await background.run<unknown[]>((statements) => statements[statement].execute());
      return { count: rows.length, isDone: rows.length < sweptMax };
    } catch (error) {
      // Two sweeps, or a sweep and an erasure, may lock the same orders in another order.
      if (isConcurrencyFailure(error)) return { count: 0, isDone: false };
      if (!isConnectionLost(error)) throw redact(error);
      return { count: 0, isDone: true };
    }
  };
  return {
    change: ({ transition, order }, timeoutMs) => changes.add(stateChange(transition, order), timeoutMs),
    refusePayment({ order, payment }, timeoutMs) {
      const values = {
        ...{ ...keyOf(order), from: order.orderStatus, ...payment },
        amount: formatAmount(payment.amount),
        paidAt: new Date(payment.paidAtMs).toISOString(),
      };
      return changes.add(({ refusePayment }) => refusePayment.execute(values), timeoutMs);
    },
    async startPayment(order, attempt, leaseSeconds, timeoutMs) {
      const values = { ...keyOf(order), ...attempt, leaseSeconds };
      const outcome = await changes.add(({ startPayment }) => startPayment.execute(values), timeoutMs);
      return outcome.kind === 'changed' ? { endsAtMs: 0, ...outcome } : outcome;
    },
    expireNow: (order, timeoutMs) => changes.add(({ expireNow }) => expireNow.execute(keyOf(order)), timeoutMs),
    endPayment: (order, attempt, timeoutMs) =>
      changes.add(({ endPayment }) => endPayment.execute({ ...keyOf(order), ...attempt }), timeoutMs),
    expireOrder: (order, timeoutMs) => expiries.add(stateChange(transitions.expire, order), timeoutMs),
    expire: () => sweep('expire'),
    deleteOldEvents: () => sweep('deleteOldEvents'),
    async close() {
      await Promise.all([changes.close(), expiries.close(), background.close()]);
    },
  };
}

function keyOf({ merchantId, fields }: Order) {
  return { merchantId, orderId: fields.order_id };
}

function stateChange({ from, to, event }: Transition, order: Order): Change {
  const { payment, cancelledAtMs } = order;
  const checkoutId = payment?.checkoutId ?? null;
  return ({ change, pay }) =>
    (checkoutId === null ? change : pay).execute({
      ...keyOf(order),
      ...{ from, to, event, checkoutId },
      paidAt: payment === null ? null : new Date(payment.paidAtMs).toISOString(),
      paymentId: payment?.paymentId ?? null,
      cancelledAt: cancelledAtMs === null ? null : new Date(cancelledAtMs).toISOString(),
    });
}

/** The values of a refused payment: as columns in the order of their table, and as an object of `orders.refused_payments`. */
function refusedValues() {
  const value = (name: string, type: string) => sql`${sql.placeholder(name)}::${sql.raw(type)}`;
  const refusedColumns = {
    checkout_id: value('checkoutId', 'bigint'),
    payment_id: value('paymentId', 'text'),
    amount: value('amount', 'numeric'),
    currency: value('currency', 'text'),
    paid_at: value('paidAt', 'timestamptz(3)'),
    code: value('code', 'text'),
    refused_at: sql`now()::timestamptz(3)`,
  };
  const members = Object.entries(refusedColumns).map(([name, column]) => sql`'${sql.raw(name)}', ${column}`);
  return { refusedColumns, refusedJson: sql`jsonb_build_object(${sql.join(members, sql`, `)})` };
}

/** The time of the database in whole milliseconds, as the columns have it, which would round it up. */
const nowInMs = sql`date_trunc('milliseconds', now())`;

function prepareStatements(db: PostgresJsDatabase) {
  const key = { merchantId: orders.merchantId, order_id: orders.order_id };
  const isOrder = and(
    eq(orders.merchantId, sql.placeholder('merchantId')),
    eq(orders.order_id, sql.placeholder('orderId')),
  );
  const isAttempts = sql`(${orders.leaseCheckoutId} = ${sql.placeholder('checkoutId')} and ${orders.leaseAttemptId} = ${sql.placeholder('attemptId')})`;
  const to = sql`${sql.placeholder('to')}::text`;
  // The end of the lease stays with an expired order: a payment counts if it was made before.
  const unlessExpired = (column: AnyPgColumn) => sql`case when ${to} = ${transitions.expire.to} then ${column} end`;
  const changed = db.$with('changed').as(
    db
      .update(orders)
      .set({
        orderStatus: sql`${sql.placeholder('to')}`,
        paidAt: sql`${sql.placeholder('paidAt')}`,
        paymentId: sql`${sql.placeholder('paymentId')}`,
        checkoutId: sql`${sql.placeholder('checkoutId')}`,
        cancelledAt: sql`${sql.placeholder('cancelledAt')}`,
        leaseCheckoutId: unlessExpired(orders.leaseCheckoutId),
        leaseAttemptId: unlessExpired(orders.leaseAttemptId),
        leaseEndsAt: unlessExpired(orders.leaseEndsAt),
      })
      .where(
        and(
          isOrder,
          eq(orders.orderStatus, sql.placeholder('from')),
          // Past its expiry, an unpaid order can only expire. A read has seen that, on Citus by another server's clock.
          sql`(${to} = ${transitions.expire.to} or (${isExpired}) is not true)`,
          // During a lease, an unpaid order can only be paid. The lease may have begun since the read.
          sql`(${to} = ${transitions.pay.to} or ${isLeaseLive} is not true)`,
        ),
      )
      .returning(key),
  );
  // Without `for update`, which Citus has for one merchant only: of two processes the second one waits, and changes nothing.
  const candidates = db
    .$with('candidates')
    .as(db.select(key).from(orders).where(isExpired).orderBy(orders.expiresAt).limit(sweptMax));
  const expired = db.$with('changed').as(
    db
      .with(candidates)
      .update(orders)
      .set({ orderStatus: transitions.expire.to })
      .from(candidates)
      .where(
        and(
          eq(orders.merchantId, candidates.merchantId),
          eq(orders.order_id, candidates.order_id),
          // Again, as a payment attempt may have claimed the order since.
          isExpired,
        ),
      )
      .returning(key),
  );
  const expiredNow = db.$with('changed').as(
    db
      .update(orders)
      .set({ orderStatus: transitions.expire.to, expiresAt: nowInMs })
      .where(
        and(
          isOrder,
          eq(orders.orderStatus, transitions.expire.from),
          sql`(${isExpired}) is not true`,
          sql`${isLeaseLive} is not true`,
        ),
      )
      .returning(key),
  );
  const old = db.$with('old').as(
    db
      .select({ merchantId: events.merchantId, eventId: events.eventId })
      .from(events)
      .where(lt(events.createdAt, sql`now() - ${eventLifetime}`))
      .orderBy(events.createdAt)
      .limit(sweptMax),
  );
  const deletedEvents = db
    .$with('deleted_events')
    .as(
      db
        .delete(events)
        .where(sql`(${events.merchantId}, ${events.eventId}) in (select merchant_id, event_id from ${old})`)
        .returning({ eventId: events.eventId }),
    );
  const deletedDeliveries = db
    .$with('deleted_deliveries')
    .as(
      db
        .delete(webhookDeliveries)
        .where(
          sql`(${webhookDeliveries.merchantId}, ${webhookDeliveries.eventId}) in (select merchant_id, event_id from ${old})`,
        )
        .returning({ eventId: webhookDeliveries.eventId }),
    );
  // A key that is in use fails the statement, so that nothing is changed.
  const recorded = db.$with('recorded').as(
    db
      .insert(payments)
      .select(
        sql`select ${sql.placeholder('checkoutId')}::bigint, ${sql.placeholder('paymentId')}::text, merchant_id, order_id from changed`,
      )
      .returning({ paymentId: payments.paymentId }),
  );
  const event = sql`${sql.placeholder('event')}::text`;
  const { refusedColumns, refusedJson } = refusedValues();
  const keptPayments = sql`case when jsonb_array_length(${orders.refusedPayments}) < ${refusedPaymentsMax}
    then ${orders.refusedPayments} else coalesce(${orders.refusedPayments} - 0, '[]') end`;
  const orderOfRefused = db.$with('changed').as(
    db
      .update(orders)
      .set({ refusedPayments: sql`${keptPayments} || ${refusedJson}` })
      .where(and(isOrder, eq(orders.orderStatus, sql.placeholder('from'))))
      .returning(key),
  );
  const reported = db
    .$with('reported')
    .as(
      db
        .insert(payments)
        .select(
          sql`select ${refusedColumns.checkout_id}, ${refusedColumns.payment_id}, merchant_id, order_id from changed where ${refusedColumns.checkout_id} is not null`,
        )
        .returning({ paymentId: payments.paymentId }),
    );
  const refused = db.$with('refused').as(
    db
      .insert(refusedPayments)
      .select(sql`select merchant_id, order_id, ${sql.join(Object.values(refusedColumns), sql`, `)} from changed`)
      .returning({ paymentId: refusedPayments.paymentId }),
  );
  return {
    change: db
      .with(changed, ...eventsOfChanged(db, event))
      .select({ order_id: changed.order_id })
      .from(changed)
      .prepare('change_order'),
    pay: db
      .with(changed, recorded, ...eventsOfChanged(db, event))
      .select({ order_id: changed.order_id })
      .from(changed)
      .prepare('pay_order'),
    refusePayment: db
      .with(orderOfRefused, reported, refused, ...eventsOfChanged(db, sql`'order.payment_refused'`))
      .select({ order_id: orderOfRefused.order_id })
      .from(orderOfRefused)
      .prepare('refuse_payment'),
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
          sql`(${isAttempts} or ${isLeaseLive} is not true)`,
        ),
      )
      .returning({ order_id: orders.order_id, leaseEndsAt: orders.leaseEndsAt })
      .prepare('start_payment'),
    expireNow: db
      .with(expiredNow, ...eventsOfChanged(db, sql`${transitions.expire.event}::text`))
      .select({ order_id: expiredNow.order_id })
      .from(expiredNow)
      .prepare('expire_order_now'),
    endPayment: db
      .update(orders)
      .set({ leaseEndsAt: nowInMs })
      .where(and(isOrder, eq(orders.orderStatus, transitions.pay.from), isAttempts, isLeaseLive))
      .returning({ order_id: orders.order_id })
      .prepare('end_payment'),
    expire: db
      .with(expired, ...eventsOfChanged(db, sql`${transitions.expire.event}::text`))
      .select({ order_id: expired.order_id })
      .from(expired)
      .prepare('expire_orders'),
    deleteOldEvents: db
      .with(old, deletedEvents, deletedDeliveries)
      .select({ eventId: old.eventId })
      .from(old)
      .prepare('delete_events'),
  };
}

/** 13 digits of the time in microseconds, so that ids sort by time, and 19 random ones. */
const newEventId = sql`'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(replace(gen_random_uuid()::text, '-', ''), 19)`;

/** The rest of a statement that changes orders: an event for each row of `changed`, and its deliveries. */
function eventsOfChanged(db: PostgresJsDatabase, type: SQL) {
  const logged = db
    .$with('logged')
    .as(
      db
        .insert(events)
        .select(sql`select merchant_id, ${newEventId}, null::bigint, ${type}, now(), order_id from changed`)
        .returning({ merchantId: events.merchantId, eventId: events.eventId }),
    );
  const queued = db.$with('queued').as(
    db
      .insert(webhookDeliveries)
      .select(
        sql`select merchant_id, endpoint_id, event_id, 0, now(), null, null, null from logged join ${webhookEndpoints} using (merchant_id) where ${isNull(webhookEndpoints.disabledAt)} and (${isNull(webhookEndpoints.eventTypes)} or ${type} = any(${webhookEndpoints.eventTypes}))`,
      )
      // Drizzle needs a column. Citus 13.2 can't parse again what it makes of one of the table.
      .returning({ one: sql`1`.as('one') }),
  );
  return [logged, queued] as const;
}
