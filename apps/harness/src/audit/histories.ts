import type { Call, Request, Response } from '@order-gateway/order-model/model';
import { attemptIdOf, identityOf } from '@order-gateway/order-model/observed';
import type { JournaledCall, JournalHead, JournalRequest, ShownOrder } from './journal.ts';

/** How far the clocks of the harness and the database may differ. */
const clockDifferenceMaxMs = 5_000;

/**
 * Outcomes that show whether the call took effect. After any other outcome, the call may or may not have taken effect.
 */
const knownOutcomes = new Set([
  ...['created', 'replayed', 'ok', 'not_found', 'order_id_conflict', 'payment_id_conflict', 'payment_in_progress'],
  ...['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch', 'invalid_request'],
  ...['order_not_paid', 'refund_id_conflict', 'refund_exceeds_payment', 'refunds_not_supported'],
  ...['not_pending', 'known_to_provider'],
]);

/**
 * Returns the calls about each order of a run, by the order's number. `accountOf` maps a client id to the account's id
 * in the database. A list counts as a read of each order that it shows. `compareOrders` checks the content of
 * orders, so all creations of an order are treated as equal here.
 */
export function callsByOrder(
  { started_at_ms: startedAtMs }: Pick<JournalHead, 'started_at_ms'>,
  calls: readonly JournaledCall[],
  accountOf: (clientId: string) => string,
): Map<number, Call[]> {
  const byOrder = new Map<number, Call[]>();
  for (const { number, request, sentMs, response } of calls) {
    const isKnown = response !== undefined && knownOutcomes.has(response.outcome);
    const receivedAt = isKnown ? response.receivedMs : Number.POSITIVE_INFINITY;
    const times = {
      sentAt: sentMs,
      receivedAt,
      during: {
        fromMs: startedAtMs + sentMs - clockDifferenceMaxMs,
        toMs: startedAtMs + receivedAt + clockDifferenceMaxMs,
      },
    };
    const add = (orderNumber: number, call: Omit<Call, keyof typeof times>) => {
      byOrder.getOrInsertComputed(orderNumber, () => []).push({ ...times, ...call });
    };
    if (number !== undefined) {
      const [shown] = response?.shown ?? [];
      const seen = isKnown
        ? {
            outcome: response.outcome,
            shown: shown && shownBy(request, shown),
            leaseEndsAtMs: response.leaseEndsAtMs,
            reversal: response.reversal,
          }
        : undefined;
      add(number, { request: requestOf(request, accountOf), response: seen });
    } else if (isKnown) {
      for (const shown of response.shown) {
        add(shown.number, { request: { kind: 'read' }, response: { outcome: 'ok', shown: shownBy(request, shown) } });
      }
    }
  }
  return byOrder;
}

function requestOf(request: JournalRequest, accountOf: (clientId: string) => string): Request {
  const attemptOf = ({ checkout, attemptId }: { readonly checkout: string; readonly attemptId: string }) =>
    attemptIdOf({ checkoutId: accountOf(checkout), attemptId });
  switch (request.kind) {
    case 'create':
      return { kind: 'create', content: '' };
    case 'pay': {
      const { attempt, payment } = request;
      const checkout = accountOf(payment.checkout);
      return { kind: 'pay', payment: { ...payment, checkout }, attempt: attempt && attemptOf(attempt) };
    }
    case 'start':
    case 'end':
      return { ...request, attempt: attemptOf(request.attempt) };
    case 'record refund':
    case 'record dispute':
      return { ...request, checkout: accountOf(request.checkout) };
    default:
      return request;
  }
}

/**
 * Returns what the response to a call shows of an order. Checkout systems see neither the token nor refused payments. A
 * cancellation shows refunds of refused payments as they were before it. `compareOrders` checks the identity in the
 * response to a creation.
 */
function shownBy({ kind }: JournalRequest, shown: ShownOrder): Response['shown'] {
  const { status, service_order_id, order_token, created_at, paymentId = null, refusedIds, reversals } = shown;
  const isWhole = kind === 'read' || kind === 'cancel';
  if (!isWhole || order_token === undefined || created_at === undefined) {
    return kind === 'pay' ? { status, paymentId } : { status };
  }
  return {
    status,
    paymentId,
    identity: identityOf({ service_order_id, order_token, created_at }),
    ...(refusedIds && { refusedIds }),
    ...(reversals && kind === 'read' && { reversals }),
  };
}
