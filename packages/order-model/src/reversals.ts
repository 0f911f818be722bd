import type { EventType } from '@order-gateway/domain/events';
import type { DisputeStatus, RefundStatus } from '@order-gateway/domain/orders';

// What the gateway promises about the refunds and disputes of one order, as a part of the specification in `model.ts`.

/** The two ids that identify a payment. */
interface PaymentId {
  readonly checkout: string;
  readonly paymentId: string;
}

/** A refund or a dispute of a payment. */
export interface Reversal extends PaymentId {
  readonly kind: 'refund' | 'dispute';
  /** The account that chose the id: the merchant, or a checkout system. It identifies a refund together with the id. */
  readonly reporter: string;
  readonly id: string;
  /** The provider's id of a refund; `null` until it is known. */
  readonly providerId: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly reason: string | null;
  /** When the refund succeeded: `then` for the time of the report that says so; `null` until then. */
  readonly refundedAtMs: number | 'then' | null;
  /** Every status that it has had, oldest first. */
  readonly statuses: readonly (RefundStatus | DisputeStatus)[];
}

/** A refund or a dispute in the store. No two changes of an order have the same time. */
export interface StoredReversal extends Omit<Reversal, 'statuses' | 'refundedAtMs'> {
  readonly refundedAtMs: number | null;
  readonly statuses: readonly { readonly status: Reversal['statuses'][number]; readonly atMs: number }[];
}

/** A requested refund, the report of a refund or dispute, or the end of a pending refund by an operator. */
export type ReversalRequest = RefundRequest | RefundReport | DisputeReport | RefundFailure;

/** A refund that the merchant requests. Without an amount, it refunds the whole remaining amount. */
export interface RefundRequest {
  readonly kind: 'refund';
  readonly refundId: string;
  readonly amount?: string | undefined;
  /** Decides how the refund of a simulated payment ends. */
  readonly note?: string | undefined;
  /** The checkout systems that make refunds; all if absent. */
  readonly refunders?: readonly string[];
}

/** A report of a refund. `refundId` is the merchant's, or `null` for a refund that was made at the provider. */
export interface RefundReport extends PaymentId {
  readonly kind: 'record refund';
  readonly refundId: string | null;
  readonly providerId: string | null;
  readonly amount: string;
  readonly status: RefundStatus;
  /** Absent: when it succeeded. */
  readonly refundedAtMs?: number | undefined;
  readonly reason?: string | undefined;
}

/** An operator ends a pending refund of the merchant, because no checkout system will make it. */
export interface RefundFailure {
  readonly kind: 'fail refund';
  readonly refundId: string;
}

/** A report of a dispute. */
export interface DisputeReport extends PaymentId {
  readonly kind: 'record dispute';
  readonly disputeId: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: DisputeStatus;
  readonly reason?: string | undefined;
}

/** What decides whether money of an order can go back. */
export interface Reversible {
  readonly merchant: string;
  /** The amount and currency of the order, and so of its payment. */
  readonly amount: string;
  readonly currency: string;
  readonly payment: PaymentId | null;
  readonly refused: readonly (PaymentId & { readonly currency: string })[];
  readonly reversals: readonly Reversal[];
}

/** How a call ends: with the refunds and disputes after it, and the one that its response shows. */
export interface Reversed {
  readonly reversals: readonly Reversal[];
  readonly outcome: string;
  readonly shown?: Reversal | undefined;
}

/**
 * Returns how a call ends that requests or reports a refund or dispute. A call without effect returns the same list.
 */
export function reversed(order: Reversible, request: ReversalRequest): Reversed {
  switch (request.kind) {
    case 'refund':
      return refund(order, request);
    case 'record refund':
      return recordRefund(order, request);
    case 'record dispute':
      return recordDispute(order, request);
    case 'fail refund':
      return failRefund(order, request);
  }
}

/** The number of refunds of an order that its merchant can request. */
const refundsMax = 100;

/**
 * A merchant can refund what is left of the payment, once per id. A payment without a checkout is refunded immediately.
 */
function refund(order: Reversible, { refundId, amount, note, refunders }: RefundRequest): Reversed {
  const { merchant, payment, currency, reversals } = order;
  if (payment === null) return { reversals, outcome: 'order_not_paid' };
  const existing = findRefund(reversals, merchant, refundId);
  if (existing !== undefined) {
    return (amount ?? existing.amount) === existing.amount
      ? { reversals, outcome: 'replayed', shown: existing }
      : { reversals, outcome: 'refund_id_conflict' };
  }
  const { checkout, paymentId } = payment;
  const isOwn = checkout === merchant || checkout === 'simulated';
  if (!isOwn && refunders?.includes(checkout) === false) return { reversals, outcome: 'refunds_not_supported' };
  const left = hundredthsLeft(order);
  const wanted = amount === undefined ? left : hundredthsOf(amount);
  const requested = reversals.filter(({ kind, reporter }) => kind === 'refund' && reporter === merchant).length;
  if (wanted > left || wanted <= 0 || requested >= refundsMax) return { reversals, outcome: 'refund_exceeds_payment' };
  const statuses = checkout === 'simulated' ? simulated(note) : [isOwn ? ('SUCCEEDED' as const) : ('PENDING' as const)];
  return changed(order, 'created', {
    kind: 'refund',
    reporter: merchant,
    id: refundId,
    checkout,
    paymentId,
    providerId: null,
    amount: (wanted / 100).toFixed(2),
    currency,
    reason: statuses.at(-1) === 'FAILED' ? 'simulated' : null,
    refundedAtMs: statuses.includes('SUCCEEDED') ? 'then' : null,
    statuses,
  });
}

/** Returns the statuses of the refund of a simulated payment. */
function simulated(note: string | undefined): readonly RefundStatus[] {
  if (note === 'fail') return ['FAILED'];
  return note === 'fail later' ? ['SUCCEEDED', 'FAILED'] : ['SUCCEEDED'];
}

/** Only a pending refund can be ended, and only while the provider does not have it. */
function failRefund(order: Reversible, { refundId }: RefundFailure): Reversed {
  const { merchant, reversals } = order;
  const known = findRefund(reversals, merchant, refundId);
  if (known === undefined || statusOf(known) !== 'PENDING') return { reversals, outcome: 'not_pending' };
  if (known.providerId !== null) return { reversals, outcome: 'known_to_provider' };
  return changed(order, 'ok', { ...known, reason: 'ended_by_operator', statuses: [...known.statuses, 'FAILED'] });
}

/**
 * A reported refund has been made, regardless of what was paid. It is the refund with its provider's id, or else the
 * merchant's refund that it names, unless that one has another provider's id or has failed: then the money went back a
 * second time.
 */
function recordRefund(order: Reversible, report: RefundReport): Reversed {
  const { merchant, reversals } = order;
  const { checkout, paymentId, refundId, providerId, amount, status, reason = null } = report;
  const refundedAtMs = report.refundedAtMs ?? 'then';
  const currency = currencyOf(order, report);
  if (currency === undefined) return { reversals, outcome: 'not_found' };
  const named = refundId === null ? undefined : findRefund(reversals, merchant, refundId);
  const isNamed =
    named !== undefined &&
    isOf(named, report) &&
    (providerId === null || named.providerId === null) &&
    (statusOf(named) !== 'FAILED' || status === 'FAILED');
  const isProviders = (item: Reversal) =>
    providerId !== null && item.checkout === checkout && item.providerId === providerId;
  const known = reversals.find(isProviders) ?? (isNamed ? named : undefined);
  if (known === undefined) {
    const key =
      refundId === null || named !== undefined
        ? { reporter: checkout, id: providerId ?? '' }
        : { reporter: merchant, id: refundId };
    const isTaken = key.id === '' || findRefund(reversals, key.reporter, key.id) !== undefined;
    if (isTaken) return { reversals, outcome: 'refund_id_conflict' };
    return changed(order, 'ok', {
      kind: 'refund',
      ...key,
      checkout,
      paymentId,
      providerId,
      amount,
      currency,
      reason,
      refundedAtMs: status === 'SUCCEEDED' ? refundedAtMs : null,
      statuses: [status],
    });
  }
  const isAnothersId = known.reporter === merchant && refundId !== null && known.id !== refundId;
  if (known.amount !== amount || isAnothersId || !isOf(known, report))
    return { reversals, outcome: 'refund_id_conflict' };
  const isOutdated = providerId === null && known.providerId !== null;
  const isLater = !isOutdated && (following[statusOf(known)] ?? []).includes(status);
  const isIdNew = known.providerId === null && providerId !== null;
  if (!isLater && !isIdNew) return { reversals, outcome: 'replayed', shown: known };
  return changed(order, 'ok', {
    ...known,
    providerId: known.providerId ?? providerId,
    ...(isLater && {
      reason,
      refundedAtMs: status === 'SUCCEEDED' ? refundedAtMs : known.refundedAtMs,
      statuses: [...known.statuses, status],
    }),
  });
}

/** Every reported dispute is stored. Only a late report of a status before the bank's decision changes nothing. */
function recordDispute(order: Reversible, report: DisputeReport): Reversed {
  const { reversals } = order;
  const { checkout, paymentId, disputeId, amount, currency, status, reason = null } = report;
  if (currencyOf(order, report) === undefined) return { reversals, outcome: 'not_found' };
  const known = reversals.find((item) => item.kind === 'dispute' && item.id === disputeId && isOf(item, report));
  if (known !== undefined && !(following[statusOf(known)] ?? []).includes(status)) {
    return { reversals, outcome: 'replayed', shown: known };
  }
  return changed(order, 'ok', {
    kind: 'dispute',
    reporter: checkout,
    id: disputeId,
    checkout,
    paymentId,
    providerId: null,
    amount,
    currency,
    reason,
    refundedAtMs: null,
    statuses: [...(known?.statuses ?? []), status],
  });
}

/** The statuses that can follow each status. A refund never leaves `FAILED`. */
const following: Readonly<Record<string, readonly string[]>> = {
  PENDING: ['SUCCEEDED', 'FAILED'],
  SUCCEEDED: ['FAILED'],
  INQUIRY: ['OPEN', 'WON', 'LOST'],
  OPEN: ['WON', 'LOST'],
  WON: ['LOST'],
  LOST: ['WON'],
};

const eventTypes: Readonly<Record<string, EventType>> = {
  SUCCEEDED: 'order.refunded',
  FAILED: 'order.refund_failed',
  INQUIRY: 'order.disputed',
  OPEN: 'order.disputed',
  WON: 'order.dispute_closed',
  LOST: 'order.dispute_closed',
};

/** Returns the types of the events: one for each id and status, in alphabetical order. */
export function reversalEventsOf(reversals: readonly Reversal[]): EventType[] {
  return reversals
    .flatMap(({ statuses }) => [...new Set(statuses)].flatMap((status) => eventTypes[status] ?? []))
    .sort();
}

/** Whether the refunds and disputes can become those in the store, by the changes that the store lists next. */
export function mayBecome(reversals: readonly Reversal[], stored: readonly StoredReversal[]): boolean {
  const changes = stored
    .flatMap((item) => item.statuses.map(({ status, atMs }) => ({ key: keyOf(item), status, atMs })))
    .toSorted((a, b) => a.atMs - b.atMs)
    .slice(0, countOf(reversals));
  return reversals.every((item) => {
    const ofItem = changes.filter(({ key }) => key === keyOf(item)).map(({ status }) => status);
    return String(ofItem) === String(item.statuses);
  });
}

/** Whether the store has exactly these refunds and disputes, given that they {@link mayBecome} those in the store. */
export function areStored(reversals: readonly Reversal[], stored: readonly StoredReversal[]): boolean {
  const byKey = new Map(stored.map((item) => [keyOf(item), item]));
  const names = ['checkout', 'paymentId', 'providerId', 'amount', 'currency', 'reason'] as const;
  return (
    stored.length === byKey.size &&
    countOf(reversals) === countOf(stored) &&
    reversals.every((item) => {
      const inStore = byKey.get(keyOf(item));
      const succeeded = inStore?.statuses.find(({ status }) => status === 'SUCCEEDED');
      const refundedAtMs = item.refundedAtMs === 'then' ? succeeded?.atMs : item.refundedAtMs;
      return names.every((name) => item[name] === inStore?.[name]) && refundedAtMs === inStore?.refundedAtMs;
    })
  );
}

/**
 * Whether the store shows a refused payment as refunded exactly if the refunds that succeeded and the disputes that
 * were lost cover it, with the time of one of them.
 */
export function isOwedUntilReturned(
  refused: PaymentId & { readonly amount: string; readonly currency: string; readonly refundedAtMs: number | null },
  stored: readonly StoredReversal[],
): boolean {
  const returned = stored.flatMap((item) => {
    const { status, atMs } = item.statuses.at(-1) ?? {};
    if (!isOf(item, refused) || (status !== 'SUCCEEDED' && status !== 'LOST')) return [];
    // A dispute in another currency counts as all of the payment.
    const { amount } = item.currency === refused.currency ? item : refused;
    return { amount: hundredthsOf(amount), atMs: item.refundedAtMs ?? atMs };
  });
  const left = returned.reduce((owed, { amount }) => owed - amount, hundredthsOf(refused.amount));
  return left > 0 ? refused.refundedAtMs === null : returned.some(({ atMs }) => atMs === refused.refundedAtMs);
}

/** Describes a refund or dispute as a response shows it. */
export function reversalText({ kind, id, paymentId, amount, currency, reason, statuses }: Reversal): string {
  return `${kind} ${id} of ${paymentId}: ${[amount, currency, statuses.at(-1), reason].filter(Boolean).join(' ')}`;
}

/**
 * Returns the change of an order by a new or changed item. Pending refunds that no longer fit fail, the latest first.
 */
function changed(order: Reversible, outcome: string, item: Reversal): Reversed {
  const withItem = (items: readonly Reversal[], added: Reversal) =>
    items.some((other) => keyOf(other) === keyOf(added))
      ? items.map((other) => (keyOf(other) === keyOf(added) ? added : other))
      : [...items, added];
  let reversals = withItem(order.reversals, item);
  while (hundredthsLeft({ ...order, reversals }) < 0) {
    const excess = reversals.findLast(
      (other) => statusOf(other) === 'PENDING' && other.providerId === null && isOf(other, order.payment),
    );
    if (excess === undefined) break;
    reversals = withItem(reversals, { ...excess, reason: 'exceeds_payment', statuses: [...excess.statuses, 'FAILED'] });
  }
  return { reversals, outcome, shown: reversals.find((other) => keyOf(other) === keyOf(item)) };
}

/** Returns how much of the order's payment can be refunded; negative if more went back than was paid. */
function hundredthsLeft({ amount, currency, payment, reversals }: Reversible): number {
  const holding = reversals.filter(
    (item) => isOf(item, payment) && ['PENDING', 'SUCCEEDED', 'OPEN', 'LOST'].includes(statusOf(item)),
  );
  // How much a dispute in another currency takes is unknown, so it holds everything.
  const held = holding.map((item) => hundredthsOf(item.currency === currency ? item.amount : amount));
  return held.reduce((left, hundredths) => left - hundredths, hundredthsOf(amount));
}

/** Converts an amount, which has two decimals. */
function hundredthsOf(amount: string): number {
  return Number(amount.replace('.', ''));
}

/** Returns the currency of one of the order's payments; `undefined` for any other payment. */
function currencyOf({ payment, refused, currency }: Reversible, reported: PaymentId): string | undefined {
  return isOf(reported, payment) ? currency : refused.find((other) => isOf(reported, other))?.currency;
}

function findRefund(reversals: readonly Reversal[], reporter: string, id: string): Reversal | undefined {
  return reversals.find((item) => item.kind === 'refund' && item.reporter === reporter && item.id === id);
}

function isOf({ checkout, paymentId }: PaymentId, payment: PaymentId | null): boolean {
  return checkout === payment?.checkout && paymentId === payment.paymentId;
}

function statusOf({ statuses }: Reversal): Reversal['statuses'][number] {
  return statuses.at(-1) ?? 'PENDING';
}

function countOf(items: readonly { readonly statuses: readonly unknown[] }[]): number {
  return items.reduce((count, { statuses }) => count + statuses.length, 0);
}

function keyOf({ kind, reporter, id, checkout, paymentId }: Omit<Reversal, 'statuses'>): string {
  return JSON.stringify(kind === 'refund' ? [kind, reporter, id] : [kind, checkout, paymentId, id]);
}
