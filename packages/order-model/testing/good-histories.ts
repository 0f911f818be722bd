import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventType } from '@order-gateway/domain/events';
import { formatAmount } from '@order-gateway/domain/money';
import { decide, inProgress, type Order, startFailure } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type { Call, History, Payment, Request, Response, Shown } from '../src/model.ts';
import { attemptIdOf, identityOf, storedOrderOf } from '../src/observed.ts';
import { createRandom, type Random } from './random.ts';

const merchantId = 1 as AccountId;
const checkoutIds = [2, 3] as AccountId[];
const timeoutMs = 1_000;

/**
 * Returns a history of calls on one order that a correct gateway can produce. The domain decides each call at one
 * moment between its sending and its response, using an in-memory store. Some calls get no response, whether they took
 * effect or not.
 */
export async function goodHistory(seed: number): Promise<History> {
  const random = createRandom(seed);
  let nowMs = 1_795_300_000_000;
  const startMs = nowMs;
  const store = createInMemoryOrderStore(undefined, () => nowMs);
  const draft = { ...sampleOrder(merchantId), createdAtMs: nowMs };
  const order = { ...draft, expiresAtMs: random.below(2) === 0 ? null : nowMs + random.below(4_000) };
  const perform = createPerform(store, order, () => nowMs);
  const calls: Call[] = [];
  const callCount = 2 + random.below(7);
  for (let index = 0; index < callCount; index += 1) {
    nowMs += random.pick([1, 20, 500, 3_000, ...(random.below(20) === 0 ? [61_000, 86_500_000] : [])]);
    const request = index === 0 ? createRequest(order) : drawRequest(random, order, nowMs);
    const isUnanswered = random.below(10) === 0;
    const response = isUnanswered && random.below(2) === 0 ? undefined : await perform(request);
    const [sentAt, receivedAt] = [nowMs - random.below(1_500), nowMs + random.below(1_500)];
    calls.push({
      request,
      sentAt: sentAt - startMs,
      receivedAt: isUnanswered ? Number.POSITIVE_INFINITY : receivedAt - startMs,
      during: { fromMs: sentAt, toMs: isUnanswered ? Number.POSITIVE_INFINITY : receivedAt },
      response: isUnanswered ? undefined : response,
    });
  }
  const [stored] = store.ordersOf(merchantId);
  if (stored === undefined) return { calls, stored: null };
  const page = await store.listEvents(merchantId, { limit: 1_000 }, timeoutMs);
  const events: readonly { type: EventType; createdAtMs: number }[] = page.kind === 'found' ? page.events : [];
  return { calls, stored: storedOrderOf(stored, events, stored.fields.order_note) };
}

function createRequest({ fields, expiresAtMs }: Order) {
  return { kind: 'create', content: fields.order_note, expiresAtMs } as const;
}

function drawRequest(random: Random, order: Order, nowMs: number): Request {
  const attempt = attemptIdOf({ checkoutId: random.pick(checkoutIds), attemptId: 'attempt' });
  switch (random.pick(['create', 'read', 'read', 'pay', 'pay', 'pay', 'cancel', 'start', 'start', 'end', 'expire'])) {
    case 'create':
      return { ...createRequest(order), ...(random.below(3) === 0 && { content: 'another note' }) };
    case 'pay': {
      const id = { checkout: String(random.pick(checkoutIds)), paymentId: `p-${random.below(2)}` };
      const paidAtMs = nowMs - random.below(5_000);
      const amount = random.below(6) === 0 ? '1.00' : formatAmount(order.fields.order_amount);
      return { kind: 'pay', payment: { ...id, paidAtMs, amount, currency: order.fields.order_currency } };
    }
    case 'cancel':
      return { kind: 'cancel' };
    case 'start':
      return { kind: 'start', attempt, leaseMs: 60_000 };
    case 'end':
      return { kind: 'end', attempt };
    case 'expire':
      return random.below(3) === 0 ? { kind: 'expire' } : { kind: 'read' };
    default:
      return { kind: 'read' };
  }
}

/** Returns a function that performs a request at one moment, as the domain decides it. */
function createPerform(store: ReturnType<typeof createInMemoryOrderStore>, draft: Order, now: () => number) {
  const shownOf = (order: Order): Shown => ({
    status: order.orderStatus,
    identity: identityOf({
      service_order_id: order.serviceOrderId,
      order_token: order.orderToken,
      created_at: new Date(order.createdAtMs).toISOString().replace('Z', '+00:00'),
    }),
    paymentId: order.payment?.paymentId ?? null,
    refusedIds: order.refusedPayments.map(({ paymentId }) => paymentId),
  });
  const find = async () => {
    const found = await store.findByOrderId(merchantId, draft.fields.order_id, timeoutMs);
    if (found.kind !== 'found') return undefined;
    return found.order;
  };
  const shown = async (outcome: string): Promise<Response> => {
    const order = await find();
    return { outcome, shown: order && shownOf(order) };
  };
  const attemptOf = (attempt: string) => {
    const [checkoutId, attemptId = ''] = attempt.split('/');
    return { checkoutId: Number(checkoutId) as AccountId, attemptId };
  };
  const pay = async ({ checkout, paymentId, paidAtMs, amount, currency }: Payment): Promise<Response> => {
    const checkoutId = Number(checkout) as AccountId;
    const found = await store.findForPayment(draft.orderToken, { checkoutId, paymentId }, timeoutMs);
    if (found.kind !== 'found') return { outcome: 'not_found' };
    const { order, isKnown, refused } = found;
    const isExact = amount === formatAmount(order.fields.order_amount);
    const hundredths = isExact ? order.fields.order_amount : (100n as typeof order.fields.order_amount);
    const payment = { checkoutId, paymentId, paidAtMs, amount: hundredths, currency, isKnown, refused };
    const decided = decide(order, { kind: 'pay', payment }, now());
    if (!decided.ok) return { outcome: decided.failure.kind };
    if (decided.value.kind === 'replayed') return shown('replayed');
    if (decided.value.kind === 'change') {
      await store.change(decided.value.change, timeoutMs);
      return shown('ok');
    }
    await store.refusePayment(decided.value.refusal, timeoutMs);
    return { outcome: decided.value.refusal.payment.code };
  };
  return async (request: Request): Promise<Response> => {
    if (request.kind === 'create') {
      const existing = await find();
      if (existing !== undefined) {
        const { content, expiresAtMs } = request;
        // An early expiry changes the expiry of the test order, so the same request differs from then on.
        const isSameExpiry = (expiresAtMs ?? existing.expiresAtMs) === existing.expiresAtMs;
        if (content !== existing.fields.order_note || !isSameExpiry) return { outcome: 'order_id_conflict' };
        return shown('replayed');
      }
      const fields = { ...draft.fields, order_note: request.content };
      await store.create({ ...draft, fields }, timeoutMs);
      // The response shows the order as it was inserted.
      const stored = store.ordersOf(merchantId)[0] as Order;
      return { outcome: 'created', shown: { ...shownOf(stored), status: 'UN_PAID' } };
    }
    if (request.kind === 'pay') return pay(request.payment);
    const order = await find();
    if (order === undefined) return { outcome: 'not_found' };
    switch (request.kind) {
      case 'read':
        return shown('ok');
      case 'cancel': {
        const decided = decide(order, { kind: 'cancel' }, now());
        if (!decided.ok) return { outcome: decided.failure.kind };
        if (decided.value.kind === 'change') await store.change(decided.value.change, timeoutMs);
        return shown(decided.value.kind === 'change' ? 'ok' : 'replayed');
      }
      case 'start': {
        const attempt = attemptOf(request.attempt);
        const failure = startFailure(order, attempt, now());
        if (failure !== undefined) return { outcome: failure.kind };
        const outcome = await store.startPayment(order, attempt, request.leaseMs / 1_000, timeoutMs);
        return { ...(await shown('ok')), ...(outcome.kind === 'changed' && { leaseEndsAtMs: outcome.endsAtMs }) };
      }
      case 'end': {
        const outcome = await store.endPayment(order, attemptOf(request.attempt), timeoutMs);
        return shown(outcome.kind === 'changed' ? 'ok' : 'replayed');
      }
      case 'expire': {
        if (order.orderStatus === 'EXPIRED') return shown('ok');
        const failure = startFailure(order, null, now()) ?? inProgress(order, now());
        if (failure !== undefined) return { outcome: failure.kind };
        await store.expireNow(order, timeoutMs);
        return shown('ok');
      }
    }
  };
}
