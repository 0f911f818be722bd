import type { AccountId } from '../src/accounts/account.ts';
import type { EventFeed, FeedEvent } from '../src/events/event-feed.ts';
import type { OrderToken } from '../src/links/order-token.ts';
import type { Order, OrderPayment } from '../src/orders/order.ts';
import { type EventType, isHeldBy, statusAsOf, transitions } from '../src/orders/order-states.ts';
import type { LinkLookup, OrderPosition, OrderStore } from '../src/orders/order-store.ts';

/** Stores orders in memory. It is never overloaded, unavailable or late. */
export interface InMemoryOrderStore extends OrderStore, EventFeed {
  /** Returns the merchant's orders, oldest first. */
  ordersOf(merchantId: AccountId): readonly Order[];
}

/** Returns an order store for the tests of its users. `nameOf` returns the merchants' names. */
export function createInMemoryOrderStore(
  nameOf: (merchantId: AccountId) => string = (merchantId) => `Merchant ${merchantId}`,
  now: () => number = Date.now,
): InMemoryOrderStore {
  const ordersByMerchant = new Map<AccountId, Map<string, Order>>();
  const events: FeedEvent[] = [];
  // As a varint and as digits, every id has the same length.
  let lastServiceOrderId = 2 ** 40;
  const replace = (order: Order) => ordersByMerchant.get(order.merchantId)?.set(order.fields.order_id, order);
  const store = (order: Order, event: EventType) => {
    replace(order);
    const position = events.length + 1;
    events.push({
      position,
      eventId: `evt_${String(position).padStart(32, '0')}`,
      type: event,
      createdAtMs: now(),
      order,
    });
    return order;
  };
  /** Stores that the order has expired, unless this is stored already. */
  const asOfNow = (stored: Order): Order => {
    const lease = stored.lease && { ...stored.lease, isLive: stored.lease.endsAtMs > now() };
    const order = { ...stored, lease };
    const orderStatus = statusAsOf(order, now());
    return orderStatus === order.orderStatus ? order : store({ ...order, orderStatus }, transitions.expire.event);
  };
  const ordersOf = (merchantId: AccountId) => [...(ordersByMerchant.get(merchantId)?.values() ?? [])].map(asOfNow);
  const find = (merchantId: AccountId, orderId: string) => {
    const order = ordersByMerchant.get(merchantId)?.get(orderId);
    return order && asOfNow(order);
  };
  const lookup = (order: Order | undefined) =>
    order === undefined ? ({ kind: 'unknown' } as const) : ({ kind: 'found', order } as const);
  const findByToken = async (token: OrderToken): Promise<LinkLookup> => {
    const stored = [...ordersByMerchant.values()]
      .flatMap((orders) => [...orders.values()])
      .find(({ orderToken }) => orderToken === token);
    if (stored === undefined) return { kind: 'unknown' };
    // Only this one: a read must not store the expiry of other orders.
    const order = asOfNow(stored);
    const merchant = {
      name: nameOf(order.merchantId),
      mode: 'live',
      isDisabled: false,
      signingSecret: null,
      brand: null,
    } as const;
    return { kind: 'found', order, merchant };
  };

  const isKnown = ({ checkoutId, paymentId }: Pick<OrderPayment, 'checkoutId' | 'paymentId'>) =>
    checkoutId !== null &&
    [...ordersByMerchant.values()]
      .flatMap((orders) => [...orders.values()])
      .flatMap(({ payment, refusedPayments }) => [...(payment ? [payment] : []), ...refusedPayments])
      .some((payment) => payment.checkoutId === checkoutId && payment.paymentId === paymentId);

  return {
    // There is no await between the lookup and the write, so concurrent calls cannot interleave.
    async create(order) {
      const orders = ordersByMerchant.get(order.merchantId) ?? new Map<string, Order>();
      const first = find(order.merchantId, order.fields.order_id);
      if (first !== undefined) return { kind: 'exists', order: first };
      lastServiceOrderId += 1;
      const stored = { ...order, serviceOrderId: lastServiceOrderId };
      ordersByMerchant.set(order.merchantId, orders.set(order.fields.order_id, stored));
      return { kind: 'created', order: stored };
    },
    findByOrderId: async (merchantId, orderId) => lookup(find(merchantId, orderId)),
    findByServiceOrderId: async (merchantId, serviceOrderId) =>
      lookup(ordersOf(merchantId).find((order) => order.serviceOrderId === serviceOrderId)),
    findByToken,
    findForPage: findByToken,
    async findForPayment(token, payment) {
      const link = await findByToken(token);
      if (link.kind !== 'found') return link;
      const refused = link.order.refusedPayments.find(
        ({ checkoutId, paymentId }) => checkoutId === payment.checkoutId && paymentId === payment.paymentId,
      );
      return { ...link, isKnown: isKnown(payment), refused: refused ?? null, nowMs: now() };
    },
    async change({ transition, order }) {
      const { merchantId, fields } = order;
      const current = find(merchantId, fields.order_id);
      if (current?.orderStatus !== transition.from) return { kind: 'conflict' };
      if (current.lease?.isLive && transition.action === 'cancel') return { kind: 'conflict' };
      if (order.payment !== null && isKnown(order.payment)) return { kind: 'conflict' };
      store(order, transition.event);
      return { kind: 'changed' };
    },
    async refusePayment({ order, payment }) {
      const current = find(order.merchantId, order.fields.order_id);
      if (current?.orderStatus !== order.orderStatus || isKnown(payment)) return { kind: 'conflict' };
      const refusedPayments = [...current.refusedPayments, { ...payment, refusedAtMs: now() }];
      store({ ...current, refusedPayments }, 'order.payment_refused');
      return { kind: 'changed' };
    },
    async startPayment({ merchantId, fields }, attempt, leaseSeconds) {
      const current = find(merchantId, fields.order_id);
      const isClaimed = current?.lease?.isLive && !isHeldBy(current.lease, attempt);
      if (current?.orderStatus !== 'UN_PAID' || isClaimed) return { kind: 'conflict' };
      const endsAtMs = Math.max(current.lease?.endsAtMs ?? 0, now() + leaseSeconds * 1_000);
      replace({ ...current, lease: { ...attempt, endsAtMs, isLive: true } });
      return { kind: 'changed', endsAtMs };
    },
    async expireNow({ merchantId, fields }) {
      const current = find(merchantId, fields.order_id);
      if (current?.orderStatus !== 'UN_PAID' || current.lease?.isLive) return { kind: 'conflict' };
      store({ ...current, orderStatus: 'EXPIRED', expiresAtMs: now() }, transitions.expire.event);
      return { kind: 'changed' };
    },
    async endPayment({ merchantId, fields }, attempt) {
      const current = find(merchantId, fields.order_id);
      if (current === undefined || !isHeldBy(current.lease, attempt)) return { kind: 'conflict' };
      replace({ ...current, lease: { ...attempt, endsAtMs: now(), isLive: false } });
      return { kind: 'changed' };
    },
    async list(
      merchantId,
      { status, createdFromMs = 0, createdToMs = Number.POSITIVE_INFINITY, metadata = {}, after, limit },
    ) {
      const listed = ordersOf(merchantId)
        .filter(({ orderStatus }) => status === undefined || orderStatus === status)
        .filter(({ createdAtMs }) => createdAtMs >= createdFromMs && createdAtMs < createdToMs)
        .filter((order) => Object.entries(metadata).every(([key, value]) => order.metadata?.[key] === value))
        .filter((order) => after === undefined || compare(after, order) < 0)
        .sort(compare);
      return { kind: 'found', orders: listed.slice(0, limit) };
    },
    async listEvents(merchantId, { types, orderId, after, limit }) {
      if (after && after.eventId !== '' && !events.some(({ eventId }) => eventId === after.eventId)) {
        return { kind: 'cursor_expired' };
      }
      const listed = events
        .filter(({ type }) => types === undefined || types.includes(type))
        .filter(({ order }) => orderId === undefined || order.fields.order_id === orderId)
        .filter(({ order }) => order.merchantId === merchantId)
        .filter(({ position }) => position > (after?.position ?? 0))
        .flatMap((event) => ({ ...event, order: find(merchantId, event.order.fields.order_id) ?? event.order }));
      const page = listed.slice(0, limit);
      return { kind: 'found', events: page, scannedTo: page.at(-1) };
    },
    ordersOf,
  };
}

/** Newest first. */
function compare(a: OrderPosition, b: OrderPosition): number {
  return b.createdAtMs - a.createdAtMs || b.serviceOrderId - a.serviceOrderId;
}
