import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventType } from '@order-gateway/domain/events';
import { type AmountHundredths, formatAmount } from '@order-gateway/domain/money';
import {
  decide,
  decideFailure,
  decideRefund,
  decideReportedDispute,
  decideReportedRefund,
  disputeStatuses,
  inProgress,
  isHeldBy,
  type Order,
  type PaymentLookup,
  refundStatuses,
  startFailure,
} from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type { Call, History, Payment, Request, Response, Shown } from '../src/model.ts';
import { attemptIdOf, identityOf, storedOrderOf } from '../src/observed.ts';
import { type RefundFailure, type ReversalRequest, reversalText, type StoredReversal } from '../src/reversals.ts';
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
  const store = createInMemoryOrderStore(
    undefined,
    () => nowMs,
    undefined,
    (id) => id !== checkoutIds[1],
  );
  const draft = { ...sampleOrder(merchantId), createdAtMs: nowMs };
  const order = { ...draft, expiresAtMs: random.below(2) === 0 ? null : nowMs + random.below(4_000) };
  const perform = createPerform(store, order, () => nowMs);
  const calls: Call[] = [];
  const callCount = 2 + random.below(9);
  for (let index = 0; index < callCount; index += 1) {
    nowMs += random.pick([1, 20, 500, 3_000, ...(random.below(20) === 0 ? [61_000, 86_500_000] : [])]);
    const { payment = null, refusedPayments = [] } = store.ordersOf(merchantId)[0] ?? {};
    const hasPayment = payment !== null || refusedPayments.length > 0;
    const draw = hasPayment && random.below(4) > 0 ? drawReversal : drawRequest;
    const request = index === 0 ? createRequest(order) : draw(random, order, nowMs);
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
      const id =
        random.below(4) === 0
          ? { checkout: 'simulated', paymentId: `test-${nowMs}` }
          : { checkout: String(random.pick(checkoutIds)), paymentId: `p-${random.below(2)}` };
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

/** Draws a refund that the merchant requests, its end by an operator, or a report of a refund or dispute. */
function drawReversal(random: Random, { fields, createdAtMs }: Order): ReversalRequest {
  const payment = { checkout: String(random.pick(checkoutIds)), paymentId: `p-${random.below(2)}` };
  const [refundId, providerId] = [`r-${random.below(2)}`, `re-${random.below(2)}`];
  const amount = random.pick(['1.00', '1.00', formatAmount(fields.order_amount)]);
  const reason = random.pick([undefined, 'a', 'b']);
  const kinds = ['refund', 'refund', 'fail refund', 'record refund', 'record refund', 'record dispute'] as const;
  switch (random.pick(kinds)) {
    case 'refund': {
      const note = random.pick([undefined, 'fail', 'fail later']);
      return { kind: 'refund', refundId, ...(random.below(3) > 0 && { amount }), note, refunders: ['2'] };
    }
    case 'fail refund':
      return { kind: 'fail refund', refundId };
    case 'record refund': {
      const status = random.pick(refundStatuses);
      const key = random.pick([
        { refundId: null, providerId },
        { refundId, providerId },
        { refundId, providerId: status === 'FAILED' ? null : providerId },
      ]);
      const refundedAtMs = random.pick([undefined, createdAtMs + random.below(1_000)]);
      return { kind: 'record refund', ...payment, ...key, amount, status, refundedAtMs, reason };
    }
    case 'record dispute': {
      const currency = random.pick([fields.order_currency, fields.order_currency, 'CHF']);
      const status = random.pick(disputeStatuses);
      return { kind: 'record dispute', ...payment, disputeId: 'd-0', amount, currency, status, reason };
    }
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
    reversals: storedOrderOf(order, [], '').reversals.map(storedText).sort(),
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
    const isSimulated = checkout === 'simulated';
    const checkoutId = isSimulated ? null : (Number(checkout) as AccountId);
    // A simulated payment has a new id, so no request refers to it.
    const key = { checkoutId: checkoutId ?? merchantId, paymentId };
    const found = await store.findForPayment(draft.orderToken, key, timeoutMs);
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
  const reverse = async (request: ReversalRequest): Promise<Response> => {
    const { payment } = (await find()) ?? {};
    const { checkout, paymentId } =
      'checkout' in request
        ? request
        : { checkout: payment?.checkoutId ?? merchantId, paymentId: payment?.paymentId ?? '' };
    const key = { checkoutId: Number(checkout) as AccountId, paymentId };
    const found = await store.findForPayment(draft.orderToken, key, timeoutMs);
    if (found.kind !== 'found') return { outcome: 'not_found' };
    if (request.kind === 'fail refund') {
      const failure = decideFailure(found.order, request.refundId, 'ended_by_operator', found.nowMs);
      if (failure.kind !== 'reverse') return { outcome: failure.kind };
      await store.changeReversals(failure.change, timeoutMs);
      return { outcome: 'ok' };
    }
    const decided = decideReversal(found, request, key);
    if (!decided.ok) return { outcome: decided.failure.kind };
    if (decided.value.kind === 'reverse') await store.changeReversals(decided.value.change, timeoutMs);
    const { reversals } = storedOrderOf((await find()) as Order, [], '');
    const done = request.kind === 'refund' ? 'created' : 'ok';
    const shownItem = reversals.find((item) => isAbout(item, request));
    return {
      outcome: decided.value.kind === 'reverse' ? done : 'replayed',
      reversal: shownItem && storedText(shownItem),
    };
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
    if ('refundId' in request || 'disputeId' in request) return reverse(request);
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
        const attempt = attemptOf(request.attempt);
        const outcome = await store.endPayment(order, attempt, timeoutMs);
        return shown(outcome.kind === 'changed' && isHeldBy(order.lease, attempt) ? 'ok' : 'replayed');
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

/** Decides a request about a refund or dispute as the domain does. */
function decideReversal(
  { order, makesRefunds, refused, nowMs }: Extract<PaymentLookup, { readonly kind: 'found' }>,
  request: Exclude<ReversalRequest, RefundFailure>,
  { checkoutId, paymentId }: { readonly checkoutId: AccountId; readonly paymentId: string },
) {
  const amount = request.amount === undefined ? undefined : hundredths(request.amount);
  if (request.kind === 'refund') {
    return decideRefund(order, { refundId: request.refundId, amount, note: request.note }, makesRefunds, nowMs);
  }
  const report = { checkoutId, paymentId, amount: amount as AmountHundredths, reason: request.reason ?? null };
  if (request.kind === 'record refund') {
    const { refundId, providerId, status, refundedAtMs = null } = request;
    const refund = { ...report, refundId, providerRefundId: providerId, status, refundedAtMs };
    return decideReportedRefund(order, refund, refused, nowMs);
  }
  const { disputeId, currency, status } = request;
  return decideReportedDispute(order, { ...report, disputeId, currency, status }, refused, nowMs);
}

function hundredths(amount: string): AmountHundredths {
  return BigInt(amount.replace('.', '')) as AmountHundredths;
}

/** Whether the response to a request shows this refund or dispute. */
function isAbout(item: StoredReversal, request: Exclude<ReversalRequest, RefundFailure>): boolean {
  const isMerchants = item.reporter === String(merchantId);
  if (request.kind === 'refund') return isMerchants && item.id === request.refundId;
  if (item.checkout !== request.checkout || item.paymentId !== request.paymentId) return false;
  if (request.kind === 'record dispute') return item.kind === 'dispute' && item.id === request.disputeId;
  const { providerId, refundId } = request;
  return providerId === null ? isMerchants && item.id === refundId : item.providerId === providerId;
}

function storedText({ statuses, ...item }: StoredReversal): string {
  return reversalText({ ...item, statuses: statuses.map(({ status }) => status) });
}
