import type { AccountId } from '../src/accounts/account.ts';
import type { EventFeed, FeedEvent } from '../src/events/event-feed.ts';
import type { OrderToken } from '../src/links/order-token.ts';
import type { Order, PaymentIdentity } from '../src/orders/order.ts';
import {
  type EventType,
  hasEnded,
  isHeldBy,
  isManual,
  mayBeEnded,
  type OrderChange,
  statusAsOf,
  transitions,
} from '../src/orders/order-states.ts';
import {
  type CreateOutcome,
  countedOrdersMax,
  type DayCount,
  type LinkLookup,
  type OrderPosition,
  type OrderStore,
  type PaymentLookup,
  type RefundPosition,
} from '../src/orders/order-store.ts';
import { pendingRefundsOf } from '../src/orders/reversals.ts';

/** Stores orders in memory. It is never overloaded, unavailable or late. */
export interface InMemoryOrderStore extends OrderStore, EventFeed {
  /** Returns the merchant's orders, oldest first, after a sweep has expired those past their expiry. */
  ordersOf(merchantId: AccountId): readonly Order[];
  /** Returns all stored data as one string, which differs if any of the data differs. */
  contents(): string;
}

/** Decides when a statement is executed. Statements never overlap. */
export type ExecuteStatement = <Result>(name: string, execute: () => Result) => Promise<Result>;

/** An order as a statement reads it: with its current status, and whether its expiry still has to be stored. */
interface ReadOrder {
  readonly order: Order;
  readonly isExpiryUnstored: boolean;
}

const dayMs = 86_400_000;

/**
 * Returns an order store for tests of code that uses one. `nameOf` returns the merchants' names. Each method runs the
 * same statements as the store in PostgreSQL, with the same conditions, so that `execute` can run statements of other
 * calls between any two of them.
 */
export function createInMemoryOrderStore(
  nameOf: (merchantId: AccountId) => string = (merchantId) => `Merchant ${merchantId}`,
  now: () => number = Date.now,
  execute: ExecuteStatement = async (_, statement) => statement(),
  makesRefunds: (checkoutId: AccountId) => boolean = () => true,
): InMemoryOrderStore {
  const ordersByMerchant = new Map<AccountId, Map<string, Order>>();
  const payments = new Map<string, { readonly order: Order } & Pick<OrderChange, 'paidOn' | 'note'>>();
  const events: FeedEvent[] = [];
  // The ids above this value have the same length, both as a varint and as digits.
  let lastServiceOrderId = 2 ** 40;

  const stored = ({ merchantId, fields }: Order) => ordersByMerchant.get(merchantId)?.get(fields.order_id);
  const allOrders = () => [...ordersByMerchant.values()].flatMap((orders) => [...orders.values()]);
  const replace = (order: Order) => ordersByMerchant.get(order.merchantId)?.set(order.fields.order_id, order);
  const replaceWithEvent = (order: Order, type: EventType, createdAtMs = now()) => {
    replace(order);
    const position = events.length + 1;
    const eventId = `evt_${String(position).padStart(32, '0')}`;
    events.push({ position, eventId, type, createdAtMs, order });
  };
  const isLive = ({ lease }: Order) => lease !== null && lease.endsAtMs > now();
  const read = (order: Order): ReadOrder => {
    const lease = order.lease && { ...order.lease, isLive: isLive(order) };
    const orderStatus = statusAsOf({ ...order, lease }, now());
    return { order: { ...order, lease, orderStatus }, isExpiryUnstored: orderStatus !== order.orderStatus };
  };
  const isExpired = (order: Order) => read(order).isExpiryUnstored;
  const expire = (order: Order): boolean => {
    const current = stored(order);
    if (current?.orderStatus !== transitions.expire.from || isLive(current)) return false;
    replaceWithEvent({ ...current, orderStatus: transitions.expire.to }, transitions.expire.event);
    return true;
  };

  const keyOf = ({ checkoutId, paymentId }: PaymentIdentity) => `${checkoutId} ${paymentId}`;
  const isPaymentStored = (payment: PaymentIdentity) => payment.checkoutId !== null && payments.has(keyOf(payment));
  const storePayment = (payment: PaymentIdentity, order: Order, paidOn?: string, note?: string) => {
    if (payment.checkoutId !== null) payments.set(keyOf(payment), { order, paidOn, note });
  };

  /** Stores the expiry of each order that had expired when it was read. Reads again if another change came first. */
  const withExpiryStored = async <Outcome>(
    readAll: () => Promise<{ readonly rows: readonly ReadOrder[]; readonly outcome: Outcome }>,
  ): Promise<Outcome> => {
    for (;;) {
      const { rows, outcome } = await readAll();
      const changed: boolean[] = [];
      for (const { order, isExpiryUnstored } of rows) {
        if (isExpiryUnstored) changed.push(await execute('expire', () => expire(order)));
      }
      if (changed.every(Boolean)) return outcome;
    }
  };
  const findRow = (choose: (orders: readonly Order[]) => Order | undefined) =>
    withExpiryStored(async () => {
      const row = await execute('find order', () => {
        const order = choose(allOrders());
        return order && read(order);
      });
      return { rows: row ? [row] : [], outcome: row?.order };
    });
  const find = async (choose: (orders: readonly Order[]) => Order | undefined) => {
    const order = await findRow(choose);
    return order === undefined ? ({ kind: 'unknown' } as const) : ({ kind: 'found', order } as const);
  };
  const linkOf = (order: Order) => ({
    ...({ kind: 'found', order } as const),
    merchant: {
      ...({
        clientId: 'app_AAAAAAAAAAAAAAAAAAAAAAAA',
        name: nameOf(order.merchantId),
        mode: 'live',
        isDisabled: false,
      } as const),
      returnSecrets: [],
      brand: null,
    },
  });
  const findByToken = async (token: OrderToken): Promise<LinkLookup> => {
    const order = await findRow((orders) => orders.find(({ orderToken }) => orderToken === token));
    return order === undefined ? { kind: 'unknown' } : linkOf(order);
  };

  return {
    create: (order) =>
      withExpiryStored<CreateOutcome>(async () => {
        const created = await execute('insert order', () => {
          const orders = ordersByMerchant.get(order.merchantId) ?? new Map<string, Order>();
          if (orders.has(order.fields.order_id)) return undefined;
          lastServiceOrderId += 1;
          const inserted = { ...order, serviceOrderId: lastServiceOrderId };
          ordersByMerchant.set(order.merchantId, orders.set(order.fields.order_id, inserted));
          return inserted;
        });
        if (created !== undefined) return { rows: [], outcome: { kind: 'created', order: created } };
        const row = await execute('find order', () => read(stored({ ...order, serviceOrderId: 0 }) as Order));
        return { rows: [row], outcome: { kind: 'exists', order: row.order } };
      }),
    findByOrderId: (merchantId, orderId) =>
      find((orders) => orders.find((order) => order.merchantId === merchantId && order.fields.order_id === orderId)),
    findByServiceOrderId: (merchantId, serviceOrderId) =>
      find((orders) =>
        orders.find((order) => order.merchantId === merchantId && order.serviceOrderId === serviceOrderId),
      ),
    findByPaymentId: (merchantId, paymentId) =>
      find((orders) =>
        latestOf(
          paymentId,
          orders.filter((order) => order.merchantId === merchantId),
        ),
      ),
    findByToken,
    findForPage: findByToken,
    findForPayment: (token, payment) =>
      withExpiryStored<PaymentLookup>(async () => {
        const known = await execute('find payment', () => payments.get(keyOf(payment)));
        const paid = known?.order;
        const { paidOn: storedPaidOn = null, note: storedNote = null } = known ?? {};
        const found = await execute('find order', () => {
          const order = allOrders().find(({ orderToken }) => orderToken === token);
          return order && { row: read(order), nowMs: now() };
        });
        if (found === undefined) return { rows: [], outcome: { kind: 'unknown' } };
        const { row, nowMs } = found;
        const { order } = row;
        const isOfOrder = paid?.merchantId === order.merchantId && paid.fields.order_id === order.fields.order_id;
        const isSame = ({ checkoutId, paymentId }: PaymentIdentity) =>
          checkoutId === payment.checkoutId && paymentId === payment.paymentId;
        const hasPaid = order.payment !== null && isSame(order.payment);
        const refused =
          isOfOrder && !hasPaid
            ? await execute('find refused payment', () => stored(order)?.refusedPayments.find(isSame) ?? null)
            : null;
        const isKnown = isOfOrder ? hasPaid || refused !== null : paid !== undefined;
        const details = {
          isKnown,
          storedPaidOn,
          storedNote,
          refused,
          makesRefunds: payment.checkoutId === order.merchantId || makesRefunds(payment.checkoutId),
          nowMs,
        };
        return { rows: [row], outcome: { ...linkOf(order), ...details } };
      }),
    change: ({ transition, order, paidOn, note }) =>
      execute('change', () => {
        const current = stored(order);
        if (current?.orderStatus !== transition.from || isExpired(current)) return { kind: 'conflict' };
        if (isLive(current) && (transition === transitions.cancel || isManual(order))) return { kind: 'conflict' };
        if (order.payment !== null && isPaymentStored(order.payment)) return { kind: 'conflict' };
        const { orderStatus, payment, cancelledAtMs } = order;
        const { endedAttempts } = order;
        replaceWithEvent(
          { ...current, orderStatus, payment, cancelledAtMs, lease: null, endedAttempts },
          transition.event,
        );
        if (payment !== null) storePayment(payment, order, paidOn, note);
        return { kind: 'changed' };
      }),
    refusePayment: ({ order, payment }) =>
      execute('refuse payment', () => {
        const current = stored(order);
        if (current?.orderStatus !== order.orderStatus || isPaymentStored(payment)) return { kind: 'conflict' };
        const previousMs = current.refusedPayments.at(-1)?.refusedAtMs ?? 0;
        const refusedAtMs = Math.max(now(), previousMs + 1);
        const { paidOn, ...refused } = payment;
        const refusedPayments = [...current.refusedPayments, { ...refused, refusedAtMs }];
        replaceWithEvent({ ...current, refusedPayments }, 'order.payment_refused', refusedAtMs);
        storePayment(payment, order, paidOn);
        return { kind: 'changed' };
      }),
    changeReversals: ({ order, events: changes }) =>
      execute('change reversals', () => {
        const current = stored(order);
        if (current?.reversals.version !== order.reversals.version - 1) return { kind: 'conflict' };
        replace({ ...current, reversals: order.reversals });
        for (const { type, atMs } of changes) replaceWithEvent({ ...current, reversals: order.reversals }, type, atMs);
        return { kind: 'changed' };
      }),
    listPendingRefunds: (checkoutId, { after = { createdAtMs: 0, serviceOrderId: 0 }, limit }) =>
      execute('list refunds', () => {
        const refunds = allOrders()
          .flatMap(pendingRefundsOf)
          .filter((refund) => refund.checkoutId === checkoutId)
          .filter((refund) => compareOldest(after, refund) < 0)
          .toSorted(compareOldest)
          .map((refund) => ({ ...refund, merchantClientId: 'app_AAAAAAAAAAAAAAAAAAAAAAAA', mode: 'live' as const }));
        return { kind: 'found', refunds: refunds.slice(0, limit), isIncomplete: false };
      }),
    startPayment: (order, attempt, leaseSeconds) =>
      execute('start payment', () => {
        const current = stored(order);
        if (current?.orderStatus !== 'UN_PAID' || isExpired(current)) return { kind: 'conflict' };
        if (isLive(current) && !isHeldBy(read(current).order.lease, attempt)) return { kind: 'conflict' };
        if (hasEnded(current, attempt)) return { kind: 'conflict' };
        const endsAtMs = Math.max(current.lease?.endsAtMs ?? 0, now() + leaseSeconds * 1_000);
        replace({ ...current, lease: { ...attempt, endsAtMs, isLive: true } });
        return { kind: 'changed', endsAtMs };
      }),
    expireNow: (order) =>
      execute('expire now', () => {
        const current = stored(order);
        if (current?.orderStatus !== 'UN_PAID' || isExpired(current) || isLive(current)) return { kind: 'conflict' };
        const expired = { ...current, orderStatus: transitions.expire.to, expiresAtMs: now() };
        replaceWithEvent(expired, transitions.expire.event);
        return { kind: 'changed' };
      }),
    endPayment: (order, attempt) =>
      execute('end payment', () => {
        const current = stored(order);
        if (current === undefined || !mayBeEnded(read(current).order, attempt)) return { kind: 'conflict' };
        if (isLive(current) !== isHeldBy(order.lease, attempt)) return { kind: 'conflict' };
        const endsAtMs = Math.min(current.lease?.endsAtMs ?? 0, now());
        const endedAttempts = [...current.endedAttempts, attempt];
        replace({ ...current, lease: { ...attempt, endsAtMs, isLive: false }, endedAttempts });
        return { kind: 'changed' };
      }),
    list: (
      merchantId,
      { status, currency, createdFromMs = 0, createdToMs = Number.POSITIVE_INFINITY, metadata = {}, after, limit },
    ) =>
      withExpiryStored(async () => {
        const rows = await execute('list orders', () =>
          [...(ordersByMerchant.get(merchantId)?.values() ?? [])]
            .map(read)
            .filter(({ order: { orderStatus } }) => status === undefined || orderStatus === status)
            .filter(({ order: { fields } }) => currency === undefined || fields.order_currency === currency)
            .filter(({ order: { createdAtMs } }) => createdAtMs >= createdFromMs && createdAtMs < createdToMs)
            .filter(({ order }) => Object.entries(metadata).every(([key, value]) => order.metadata?.[key] === value))
            .filter(({ order }) => after === undefined || compare(after, order) < 0)
            .sort((a, b) => compare(a.order, b.order))
            .slice(0, limit),
        );
        return { rows, outcome: { kind: 'found', orders: rows.map(({ order }) => order) } };
      }),
    countByDay: (merchantId, sinceMs) =>
      execute('count orders', () => {
        const counted = [...(ordersByMerchant.get(merchantId)?.values() ?? [])]
          .filter(({ createdAtMs }) => createdAtMs >= sinceMs)
          .sort(compare)
          .slice(0, countedOrdersMax)
          .map((order) => read(order).order);
        const groups = Map.groupBy(counted, ({ createdAtMs, fields }) =>
          [createdAtMs - (createdAtMs % dayMs), fields.order_currency].join(' '),
        );
        const cutOffMs = counted.length === countedOrdersMax ? counted.at(-1)?.createdAtMs : undefined;
        return { kind: 'found', days: [...groups].map(countOf), cutOffMs };
      }),
    async listEvents(merchantId, { types, orderId, after, limit }) {
      if (after && after.eventId !== '' && !events.some(({ eventId }) => eventId === after.eventId)) {
        return { kind: 'cursor_expired' };
      }
      const page = await execute('list events', () =>
        events
          .filter(({ type }) => types === undefined || types.includes(type))
          .filter(({ order }) => orderId === undefined || order.fields.order_id === orderId)
          .filter(({ order }) => order.merchantId === merchantId)
          .filter(({ position }) => position > (after?.position ?? 0))
          .slice(0, limit),
      );
      const found = await execute('find orders', () => page.map(({ order }) => stored(order) ?? order));
      const listed = page.map((event, index) => ({ ...event, order: found[index] ?? event.order }));
      return { kind: 'found', events: listed, scannedTo: page.at(-1) };
    },
    ordersOf(merchantId) {
      const orders = () => [...(ordersByMerchant.get(merchantId)?.values() ?? [])];
      for (const order of orders().filter(isExpired)) expire(order);
      return orders().map((order) => read(order).order);
    },
    contents() {
      const stored = [allOrders(), [...payments.keys()], events];
      return JSON.stringify(stored, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    },
  };
}

/** Returns the order that a payment with this id paid last, or else the one for which it was refused last. */
function latestOf(paymentId: string, orders: readonly Order[]): Order | undefined {
  const paidAtMs = ({ payment }: Order) => (payment?.paymentId === paymentId ? payment.paidAtMs : undefined);
  const refusedAtMs = ({ refusedPayments }: Order) =>
    refusedPayments.findLast((refused) => refused.paymentId === paymentId)?.refusedAtMs;
  return lastBy(paidAtMs, orders) ?? lastBy(refusedAtMs, orders);
}

/** Returns the order with the latest time, ignoring orders without a time. */
function lastBy(timeOf: (order: Order) => number | undefined, orders: readonly Order[]): Order | undefined {
  const timed = orders.flatMap((order) => {
    const timeMs = timeOf(order);
    return timeMs === undefined ? [] : { order, timeMs };
  });
  return timed.toSorted((a, b) => b.timeMs - a.timeMs)[0]?.order;
}

function countOf([key, orders]: readonly [string, readonly Order[]]): DayCount {
  const [day = '', currency = ''] = key.split(' ');
  const paid = orders.filter(({ orderStatus }) => orderStatus === 'PAID');
  return {
    dayMs: Number(day),
    currency,
    created: orders.length,
    paid: paid.length,
    expired: orders.filter(({ orderStatus }) => orderStatus === 'EXPIRED').length,
    refusedPayments: orders.reduce((sum, { refusedPayments }) => sum + refusedPayments.length, 0),
    paidHundredths: paid.reduce((sum, { fields }) => sum + fields.order_amount, 0n),
  };
}

function compareOldest(a: RefundPosition, b: RefundPosition): number {
  return a.createdAtMs - b.createdAtMs || a.serviceOrderId - b.serviceOrderId;
}

/** Sorts orders newest first. */
function compare(a: OrderPosition, b: OrderPosition): number {
  return b.createdAtMs - a.createdAtMs || b.serviceOrderId - a.serviceOrderId;
}
