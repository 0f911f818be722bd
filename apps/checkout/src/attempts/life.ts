import type { AmountHundredths } from '@order-gateway/domain/money';
import type { Answer, Customer, SeenDispute, SeenRefund } from '../gateway/gateway.ts';
import {
  ProviderError,
  type RefundInput,
  type Seen,
  type SeenPayment,
  type SeenReversals,
  type Session,
} from '../providers/provider.ts';
import { type Attempt, type AttemptState, paymentOfAttempt, refundedByHand } from '../store/schema.ts';
import type { AttemptChange } from '../store/store.ts';

/** How an attempt continues: in another state, or in the same one after a number of seconds; `null` for never. */
export type Step =
  | { readonly next: AttemptState; readonly change?: AttemptChange }
  | { readonly waitSeconds: number | null; readonly change?: AttemptChange };

/** The actions of a rule. Every method rejects if its outcome is unknown. */
export interface Actions {
  start(leaseSeconds: number): Promise<Answer>;
  end(): Promise<Answer>;
  record(): Promise<Answer>;
  open(customer: Customer | undefined): Promise<Session>;
  capture(): Promise<unknown>;
  close(seen: Seen): Promise<unknown>;
  /** Refunds a payment after a number of refunds that failed. */
  refund(refund: RefundInput, failed: number): Promise<unknown>;
  /** Reports the refunds and disputes of the payment to the gateway, and returns them. */
  report(): Promise<SeenReversals>;
}

/** The facts that a rule can use. */
export interface Situation<Kind extends Seen | undefined = Seen | undefined> {
  readonly attempt: Attempt;
  readonly seen: Kind;
  readonly act: Actions;
  readonly nowMs: number;
  /** Whether the attempt came into its state in this run. */
  readonly isNew: boolean;
  /** Whether the customer wants to pay in another way. */
  readonly isUnwanted: boolean;
  /** Whether the sweep reads a list of the provider's changes, so that single sessions need not be checked. */
  readonly isListed: boolean;
}

type Authorised = Extract<Seen, { is: 'authorised' }>;
type Captured = Extract<Seen, { is: 'captured' }>;

type Rule<Kind extends Seen | undefined> = (situation: Situation<Kind>) => Step | Promise<Step>;

/** The rules of a state that depend on what the provider reports. */
type RulesBySeen = { readonly [Kind in Seen['is']]: Rule<Extract<Seen, { readonly is: Kind }>> };

/** The rules of a state: one that does not ask for the attempt's status, or one for each status. */
type Rules = { readonly unseen: Rule<undefined> } | RulesBySeen;

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** The duration of the claim while the customer pays: longer than a session whose end the checkout can choose. */
const openClaimSeconds = hour;

/** The duration of the claim once money is authorised: longer than any expected outage of the checkout. */
const moneyClaimSeconds = 7 * day;

/** A claim ends this long after its session, because a payment may be authorised in the last second. */
const claimMarginSeconds = 10 * minute;

/**
 * An attempt whose session was not opened within this time, or that the customer no longer wants, is abandoned. No
 * customer has the address of its session.
 */
const newSeconds = 20 * minute;

/** How often an open session is checked if nothing else reports that the customer paid. */
const openLookSeconds = 30;

/** The pauses between the checks of an ended attempt. */
const looksAfterEnd = [10 * minute, day, 6 * day];

const to = (next: AttemptState) => (): Step => ({ next });

const paymentOf = ({ paymentId, paidAt, amount, currency }: SeenPayment) => ({
  paymentId,
  paidAt,
  paidHundredths: amount,
  paidCurrency: currency,
});

/** The provider took the money. The details that it reports are stored once, and reported to the gateway unchanged. */
const captured: Rule<Captured> = ({ seen }) => ({ next: 'CAPTURED', change: paymentOf(seen) });

const ended: Rule<Extract<Seen, { is: 'gone' }>> = ({ seen }) => ({
  next: 'ENDING',
  change: { reason: seen.reason },
});

/** Runs a call that the provider can refuse, which is an outcome. Other errors leave the attempt unchanged. */
export async function unlessProviderRefuses<Value>(call: Promise<Value>) {
  try {
    return { value: await call };
  } catch (error) {
    if (error instanceof ProviderError && error.kind === 'refused') return { refused: error.code };
    throw error;
  }
}

/** Claims the order before its session is opened, so that no payment is possible without a claim. */
async function openSession({ attempt, act, nowMs, isUnwanted }: Situation): Promise<Step> {
  if (isUnwanted || nowMs - attempt.createdAt.getTime() > newSeconds * 1_000)
    return { next: 'ENDING', change: { reason: 'not_opened' } };
  const claim = await act.start(openClaimSeconds);
  if (claim.refused !== undefined) return { next: 'ENDING', change: { reason: claim.refused } };
  const opened = await unlessProviderRefuses(act.open(claim.customer));
  if (opened.value === undefined) return { next: 'ENDING', change: { reason: opened.refused } };
  const session = opened.value;
  const leaseSeconds = Math.ceil((session.sessionEndsAt.getTime() - nowMs) / 1_000) + claimMarginSeconds;
  if (leaseSeconds > openClaimSeconds) {
    const extended =
      leaseSeconds > moneyClaimSeconds ? ({ refused: 'session_too_long' } as const) : await act.start(leaseSeconds);
    // No customer has the address of this session.
    if (extended.refused !== undefined) return { next: 'ENDING', change: { ...session, reason: extended.refused } };
  }
  return { next: 'OPEN', change: session };
}

/** Claims the order for longer than any outage, before money is taken. */
async function claim({ attempt, seen, act }: Situation<Authorised>): Promise<Step> {
  const change = { ...paymentOf(seen), captureBefore: seen.captureBefore ?? null };
  if (seen.amount !== attempt.amountHundredths || seen.currency !== attempt.currency)
    return { next: 'VOIDING', change: { ...change, reason: 'payment_mismatch' } };
  const { refused } = await act.start(moneyClaimSeconds);
  return refused === undefined
    ? { next: 'CLAIMED', change }
    : { next: 'VOIDING', change: { ...change, reason: refused } };
}

/**
 * Extends the claim immediately before the capture. If the claim or the capture is refused, or the capture fails later,
 * the money is released, so the customer is not charged.
 */
async function capture({ seen, act }: Situation<Authorised>): Promise<Step> {
  if (seen.hasCaptureFailed) return { next: 'VOIDING', change: { reason: 'capture_failed' } };
  const { refused } = await act.start(moneyClaimSeconds);
  const reason = refused ?? (await unlessProviderRefuses(act.capture())).refused;
  return reason === undefined ? { next: 'CLAIMED' } : { next: 'VOIDING', change: { reason } };
}

/**
 * Closes a session only if the customer wants to pay in another way. A payment may have been made before the session is
 * closed.
 */
async function closeIfUnwanted(situation: Situation<Extract<Seen, { is: 'open' }>>): Promise<Step> {
  const { attempt, seen, act, nowMs, isUnwanted, isListed } = situation;
  if (!isUnwanted) {
    const secondsLeft = Math.ceil((attempt.sessionEndsAt.getTime() - nowMs) / 1_000);
    return { waitSeconds: isListed && secondsLeft > openLookSeconds ? secondsLeft : openLookSeconds };
  }
  await unlessProviderRefuses(act.close(seen));
  return { next: 'OPEN' };
}

async function record({ act }: Situation): Promise<Step> {
  const { refused } = await act.record();
  return refused === undefined ? { next: 'RECORDED' } : { next: 'OWED', change: { reason: refused } };
}

/**
 * Returns how much of a payment the customer does not have again, by refunds or by disputes: those that were lost, or
 * all with the statuses `taken`.
 */
export function owedOf(
  { amount, currency }: { readonly amount: bigint; readonly currency: string },
  { refunds, disputes }: SeenReversals<Pick<SeenRefund, 'amount' | 'status'>>,
  taken: readonly SeenDispute['status'][] = ['LOST'],
): AmountHundredths {
  const returned = [
    ...refunds.filter(({ status }) => status !== 'FAILED').map((refund) => refund.amount),
    ...disputes
      .filter(({ status }) => taken.includes(status))
      .map((dispute) => (dispute.currency === currency ? dispute.amount : amount)),
  ];
  return returned.reduce((rest, part) => rest - part, amount) as AmountHundredths;
}

/** Whether the bank has yet to decide who gets the money of a payment. */
export const isDisputed = ({ disputes }: Pick<SeenReversals, 'disputes'>) =>
  disputes.some(({ status }) => status === 'OPEN');

const failedOf = ({ refunds }: Pick<SeenReversals<Pick<SeenRefund, 'status'>>, 'refunds'>) =>
  refunds.filter(({ status }) => status === 'FAILED').length;

/**
 * Whether a person has to return what is left of a payment. If a refund failed, another one would fail too, unless the
 * reason was a dispute that was won. If a dispute of only a part was lost, providers treat the payment differently.
 */
export const isForPerson = (reversals: SeenReversals<Pick<SeenRefund, 'status'>>) =>
  reversals.disputes.some(({ status }) => status === 'LOST') ||
  failedOf(reversals) > reversals.disputes.filter(({ status }) => status === 'WON').length;

/** Refunds a payment that the gateway refused, unless a person has to, or the bank returns the money. */
async function refund({ seen, act }: Situation<Captured>): Promise<Step> {
  const reversals = await act.report();
  const amount = owedOf(seen, reversals);
  if (amount <= 0n) return { next: 'REFUNDED' };
  if (isForPerson(reversals) || isDisputed(reversals)) return { waitSeconds: hour };
  await act.refund({ amount, currency: seen.currency }, failedOf(reversals));
  return { next: 'OWED' };
}

/** Reports the refunds and disputes of a payment after a webhook or a list mentioned them. */
async function report({ attempt, act, nowMs, isNew }: Situation): Promise<Step> {
  const { dueAt, state, reason } = attempt;
  if (isNew || dueAt === null) return { waitSeconds: null };
  const secondsLeft = (dueAt.getTime() - nowMs) / 1_000;
  if (secondsLeft > 0) return { waitSeconds: secondsLeft };
  const reversals = await act.report();
  // The merchant has the money again that a refund or a lost dispute had returned.
  const isOwedAgain =
    state === 'REFUNDED' && reason !== refundedByHand && owedOf(paymentOfAttempt(attempt), reversals) > 0n;
  return isOwedAgain ? { next: 'OWED' } : { waitSeconds: null };
}

/** Checks an ended attempt again, because a session could not be closed, or an old message may arrive late. */
async function lookLater({ attempt: { looks, dueAt }, act, nowMs }: Situation): Promise<Step> {
  const isEarly = looks > 0 && (dueAt === null || dueAt.getTime() > nowMs);
  if (isEarly) return { waitSeconds: dueAt && (dueAt.getTime() - nowMs) / 1_000 };
  // A claim that another process made at the same time may have arrived after the first end.
  if (looks === 1) await act.end();
  return { waitSeconds: looksAfterEnd[looks] ?? null, change: { looks: looks + 1 } };
}

/**
 * Everything that can happen to an attempt: for each state, what is done, and the next state. The return address, the
 * webhooks and the sweep all go through this table. A rule whose call has no outcome rejects, which changes no state:
 * the attempt is continued later.
 *
 * Each rule prevents a loss:
 * - The order is claimed before a session opens, and an attempt is ended twice, so that no order can be paid without a
 *   claim, or stays claimed without a payment in progress.
 * - The claim lasts 7 days before a capture, so that no order is cancelled while its money is captured.
 * - VOIDING is stored before the money is released, so that one process never captures the money while another releases
 *   it.
 * - Only a payment that RecordPayment refuses is refunded, and only after the provider was asked for refunds and
 *   disputes.
 */
export const life: { readonly [State in AttemptState]: Rules } = {
  NEW: { unseen: openSession },
  OPEN: { open: closeIfUnwanted, authorised: claim, captured, refunded: to('ENDING'), gone: ended },
  CLAIMED: {
    open: () => ({ waitSeconds: openLookSeconds }),
    authorised: capture,
    captured,
    refunded: to('ENDING'),
    gone: ended,
  },
  VOIDING: {
    open: to('ENDING'),
    async authorised({ seen, act }) {
      await unlessProviderRefuses(act.close(seen));
      return { next: 'VOIDING' };
    },
    captured,
    refunded: to('ENDING'),
    gone: to('ENDING'),
  },
  ENDING: {
    async unseen({ act }) {
      await act.end();
      return { next: 'ENDED' };
    },
  },
  ENDED: {
    open: lookLater,
    // Only the payment's identifier releases the money.
    authorised: ({ seen }) => ({ next: 'VOIDING', change: paymentOf(seen) }),
    captured,
    refunded: () => ({ waitSeconds: null }),
    gone: lookLater,
  },
  CAPTURED: { unseen: record },
  OWED: {
    open: () => ({ waitSeconds: minute }),
    authorised: () => ({ waitSeconds: minute }),
    captured: refund,
    async refunded({ act }) {
      await act.report();
      return { next: 'REFUNDED' };
    },
    gone: () => ({ waitSeconds: minute }),
  },
  RECORDED: { unseen: report },
  REFUNDED: { unseen: report },
};
