import { open } from 'node:fs/promises';
import { messageOf } from '@order-gateway/runtime/process';
import { amountOf, type Gateway, OrderStatus, paymentRefusals } from '../gateway/gateway.ts';
import { openTransfers } from '../providers/transfer/transfers.ts';
import type { Store } from '../store/store.ts';
import { duplicateDays, type NewCredit, openCredits, type StoredCredit } from './credits.ts';
import { readStatements } from './read-statements.ts';
import { type Credit, type Statement, StatementError } from './statement.ts';

/** The result of a credit: RECORDED, WAITING, OWED and LISTED as stored, KNOWN before, or MATCHED in a dry run. */
export interface Outcome {
  readonly credit: Pick<Credit, 'amount' | 'currency' | 'date' | 'payer'>;
  /** The number of the stored credit. */
  readonly creditId?: number | undefined;
  readonly state: StoredCredit['state'] | 'KNOWN' | 'MATCHED';
  readonly reason?: string | undefined;
  readonly orderId?: string | undefined;
}

/** The state of a credit after a report, with the reason. */
type Report = Pick<Outcome, 'state' | 'reason' | 'orderId'>;

/** The dependencies of the import. */
export interface ImportDeps {
  readonly store: Pick<Store, 'run' | 'first' | 'log'>;
  readonly gateway: Pick<Gateway, 'resolve' | 'start' | 'recordTransfer'>;
}

/** How long an order is claimed while its transfer is recorded. */
const claimSeconds = 60;

const waitingAtOnce = 100;

/** Opens the import of statements. */
export function openImport(deps: ImportDeps) {
  const { store, gateway } = deps;
  const credits = openCredits(store);
  const transfers = openTransfers(store);
  const { report, reportAndStore, reportIfLost, reportWaiting } = openReports(deps, credits);
  const read: Statement[] = [];
  /** The orders that a dry run would record as paid. */
  const matched = new Set<string>();

  /** Finds the order of a credit and reports it. A known credit changes nothing, unless it was not reported. */
  async function take(credit: Credit, isDryRun: boolean): Promise<Outcome> {
    const { account, paymentId, amount, currency, payerDigest, acceptedAt, date: paidOn, problem } = credit;
    if (problem !== undefined || amount === undefined) return { credit, state: 'LISTED', reason: problem };
    const found = credit.references.length === 0 ? [] : await transfers.findTo(account, credit.references);
    const transfer = found.length === 1 ? found[0] : undefined;
    const reason =
      found.length > 1 ? 'several_orders' : credit.references.length > 0 ? 'unknown_order' : 'no_reference';
    const fields = {
      account,
      paymentId,
      amountHundredths: amount,
      currency,
      payerDigest,
      reference: transfer?.reference ?? null,
      paidAt: acceptedAt ?? null,
      paidOn,
      state: 'LISTED' as const,
      reason,
    };
    const dry = { ...fields, creditId: 0, orderToken: null, createdAt: new Date() };
    const stored = isDryRun ? ((await credits.findPayment(paymentId)) ?? dry) : await credits.add(fields);
    if (stored === undefined) throw new Error('a stored credit disappeared');
    const outcome = { credit, creditId: stored.creditId || undefined };
    if (!isSameBooking(stored, fields))
      return { ...outcome, creditId: undefined, state: 'LISTED', reason: 'reference_reused' };
    if (['RECORDED', 'OWED', 'REFUNDED'].includes(stored.state))
      return { ...outcome, ...((!isDryRun && (await reportIfLost(stored))) || { state: 'KNOWN' as const }) };
    // A person can have assigned an entry that waits. It may have been reported, so it is no duplicate.
    const isWaiting = stored.state === 'WAITING';
    const orderToken = isWaiting ? stored.orderToken : transfer?.orderToken;
    if (!isWaiting && (await credits.isDuplicate(fields))) {
      if (!isDryRun) await credits.change(stored.creditId, { state: 'LISTED', reason: 'possible_duplicate' });
      return { ...outcome, state: 'LISTED', reason: 'possible_duplicate' };
    }
    if (!orderToken) return { ...outcome, state: 'LISTED', reason };
    if (!isDryRun) return { ...outcome, ...(await reportAndStore(stored, orderToken)) };
    const expected = await report(stored, orderToken, true);
    if (expected.state !== 'MATCHED') return { ...outcome, ...expected };
    if (matched.has(orderToken)) return { ...outcome, state: 'LISTED', reason: 'already_paid' };
    matched.add(orderToken);
    return { ...outcome, ...expected };
  }

  /** Checks that a statement is one of a connected account, and of the kind that was read before. */
  async function check({ account, kind }: Statement): Promise<void> {
    if ((await transfers.merchantsOf(account)).length === 0)
      throw new StatementError(`No merchant has connected the account ${account}.`);
    const known = (await credits.kindOf(account)) ?? read.find((other) => other.account === account)?.kind ?? kind;
    if (known !== kind)
      throw new StatementError(
        `The account ${account} uses statements of the kind ${known}, not ${kind}. The other kind gives the same payment a different reference. To change the kind, disconnect the account and connect it again.`,
      );
  }

  return {
    /**
     * Reads a file to its end, and then reports its credits. Yields the result of each. Rejects with a
     * {@link StatementError} before anything was reported.
     */
    async *importFile(path: string, isDryRun: boolean): AsyncGenerator<Outcome> {
      await using file = await open(path).catch((error: unknown) => {
        throw new StatementError(`The file can't be opened: ${messageOf(error)}.`);
      });
      const found: Statement[] = [];
      for await (const item of readStatements(file)) if (item.is === 'statement') found.push(item);
      for (const statement of found) await check(statement);
      read.push(...found);
      if (!isDryRun) for (const statement of found) await credits.addStatement(statement);
      for await (const item of readStatements(file)) if (item.is === 'credit') yield await take(item, isDryRun);
    },

    /** Returns the statements of all imported files before which one is missing. */
    withGapBefore: () => credits.withGapBefore(read),

    /** Reports a listed credit for an order that a person chose, and stores who did. */
    async assign(creditId: number, orderToken: string, actor: string): Promise<Report> {
      const credit = await credits.find(creditId);
      if (credit === undefined) return { state: 'LISTED', reason: 'unknown_entry' };
      if (credit.state !== 'LISTED') return { state: 'KNOWN', reason: credit.state };
      const order = await gateway.resolve(orderToken);
      const isTheirs = order !== undefined && (await transfers.merchantsOf(credit.account)).includes(order.merchantId);
      if (!isTheirs) return { state: 'LISTED', reason: 'unknown_order' };
      // A wrong ENTRY or ORDER_TOKEN must not make the merchant owe money.
      if (order.orderStatus === OrderStatus.PAID || order.orderStatus === OrderStatus.CANCELLED)
        return { state: 'LISTED', reason: 'order_not_payable' };
      const { paymentId } = credit;
      await store.log(actor, 'assign', order.merchantId, { payment_id: paymentId, order_id: order.orderId });
      return reportAndStore(credit, orderToken);
    },

    /** Reports the credits that wait for the end of another payment. */
    reportWaiting,
  };
}

/**
 * Whether a credit is the stored one that has its payment_id. Some banks use references again, such as each year.
 * What is unknown of one of them decides nothing: an erased payer, or an order whose customer chose a transfer later.
 */
function isSameBooking(stored: StoredCredit, credit: NewCredit): boolean {
  const days = Math.abs(Date.parse(stored.paidOn) - Date.parse(credit.paidOn)) / 86_400_000;
  return (
    stored.amountHundredths === credit.amountHundredths &&
    stored.currency === credit.currency &&
    days <= duplicateDays &&
    (stored.payerDigest === credit.payerDigest || stored.payerDigest === '') &&
    (stored.reference ?? credit.reference) === (credit.reference ?? stored.reference)
  );
}

/** Opens the reports of credits to the gateway. */
function openReports({ gateway }: ImportDeps, credits: ReturnType<typeof openCredits>) {
  /**
   * Reports a credit for an order, unless the order's amount differs. The claim keeps other payments away, and shows
   * whether one is in progress, which may still pay the order. A refused claim decides nothing, because RecordPayment
   * decides whether the payer paid in time.
   */
  async function report(credit: StoredCredit, orderToken: string, isDryRun: boolean): Promise<Report> {
    const order = await gateway.resolve(orderToken);
    if (order === undefined) return { state: 'LISTED', reason: 'unknown_order' };
    const { orderId } = order;
    const { creditId, paymentId, amountHundredths, currency, paidAt, paidOn } = credit;
    if (amountOf(order) !== amountHundredths || order.orderCurrency !== currency)
      return { state: 'LISTED', reason: 'another_amount', orderId };
    // The merchant may have recorded this very transfer by hand. A credit that waits may have paid the order itself.
    if (credit.state === 'LISTED' && order.orderStatus === OrderStatus.PAID)
      return { state: 'LISTED', reason: 'already_paid', orderId };
    if (isDryRun) return { state: 'MATCHED', orderId };
    const attempt = { orderToken, attemptId: `transfer_${creditId}` };
    const claim = await gateway.start(attempt, claimSeconds);
    if (claim.refused === 'payment_in_progress') return { state: 'WAITING', reason: claim.refused, orderId };
    const payment = { ...attempt, paymentId, paidAt, paidOn, amount: amountHundredths, currency };
    const answer = await gateway.recordTransfer(payment);
    if (answer.refused === undefined) return { state: 'RECORDED', orderId };
    return { state: paymentRefusals.includes(answer.refused) ? 'OWED' : 'LISTED', reason: answer.refused, orderId };
  }

  /**
   * Reports a credit and stores the outcome. Before that, stores that it may have been reported, so that no duplicate
   * is reported after a crash. If the gateway can't be reached, the credit waits.
   */
  async function reportAndStore(credit: StoredCredit, orderToken: string): Promise<Report> {
    const waiting = (error: unknown): Report => ({ state: 'WAITING', reason: messageOf(error) });
    const expected = await report(credit, orderToken, true).catch(waiting);
    if (expected.state === 'LISTED') {
      await credits.change(credit.creditId, { state: 'LISTED', reason: expected.reason ?? null }, [credit.state]);
      return expected;
    }
    if (!(await credits.startReport(credit.creditId, orderToken)))
      return { state: 'KNOWN', reason: (await credits.find(credit.creditId))?.state };
    const outcome = await report({ ...credit, state: 'WAITING' }, orderToken, false).catch(waiting);
    const state = outcome.state as StoredCredit['state'];
    await credits.change(credit.creditId, { state, reason: outcome.reason ?? null });
    return outcome;
  }

  /** Reports a recorded credit again whose order is not paid, because a gateway was restored from a backup. */
  async function reportIfLost({ orderToken, ...credit }: StoredCredit): Promise<Report | undefined> {
    if (credit.state !== 'RECORDED' || orderToken === null) return undefined;
    const order = await gateway.resolve(orderToken).catch(() => undefined);
    if (order === undefined || order.orderStatus === OrderStatus.PAID) return undefined;
    await credits.change(credit.creditId, { state: 'WAITING', reason: null }, ['RECORDED']);
    return reportAndStore({ ...credit, orderToken, state: 'WAITING' }, orderToken);
  }

  async function reportWaiting(): Promise<void> {
    let after = 0;
    for (;;) {
      const waiting = await credits.waiting(waitingAtOnce, after);
      for (const credit of waiting) if (credit.orderToken !== null) await reportAndStore(credit, credit.orderToken);
      after = waiting.at(-1)?.creditId ?? after;
      if (waiting.length < waitingAtOnce) return;
    }
  }

  return { report, reportAndStore, reportIfLost, reportWaiting };
}
