import { hash } from 'node:crypto';
import { type AmountHundredths, parseAmount } from '@order-gateway/domain/money';
import { parseTime } from '@order-gateway/domain/requests';
import { creditorReferencesIn } from '../providers/transfer/creditor-reference.ts';
import { compact } from '../providers/transfer/mod97.ts';
import type { BookingProblem, Credit } from './statement.ts';

/** The details of one credit in a statement. Absent texts are empty. */
export interface CreditTexts {
  readonly account: string;
  /** The bank's reference of the payment. */
  readonly reference: string;
  readonly amount: string;
  readonly currency: string;
  readonly date: string;
  readonly acceptedAt: string;
  readonly payerName: string;
  readonly payerAccount: string;
  /** The texts that may contain a creditor reference. */
  readonly texts: readonly string[];
  readonly problem?: BookingProblem | undefined;
}

/**
 * A reference with which a credit can be identified: with the account, it fits a payment_id. ISO 20022 allows 35
 * characters, and a position in a batch follows them.
 */
const referenceForm = /^\P{C}{1,64}$/u;

/**
 * Returns the function that makes credits of the entries of one file. A credit without a reference of the bank is
 * identified by its content and its number among equal ones, so that each file with these credits identifies them
 * equally.
 */
export function createCreditOf() {
  const equals = new Map<string, number>();
  return (texts: CreditTexts): Credit => {
    const { account, currency, payerName, payerAccount } = texts;
    const reference = referenceForm.test(texts.reference) ? texts.reference : '';
    const date = dateOf(texts.date);
    const amount = amountOf(texts.amount);
    const content = [account, date, texts.amount, currency, payerName, payerAccount, ...texts.texts];
    const digest = digestOf(JSON.stringify(content));
    const count = reference === '' ? (equals.get(digest) ?? 0) + 1 : 0;
    if (count > 0) equals.set(digest, count);
    return {
      is: 'credit',
      account,
      // Banks count their references from 1, and a checkout takes the payments of many accounts.
      paymentId: `${account}/${reference || `${digest}-${count}`}`,
      amount,
      currency,
      date: date ?? '',
      acceptedAt: timeOf(texts.acceptedAt),
      payer: [payerName, payerAccount].filter(Boolean).join(', '),
      payerDigest: digestOf(compact(payerAccount || payerName)),
      references: [...new Set(texts.texts.flatMap(creditorReferencesIn))],
      problem: texts.problem ?? problemOf(amount, currency, date),
    };
  };
}

function problemOf(amount: AmountHundredths | undefined, currency: string, date: string | undefined) {
  if (currency !== 'EUR') return 'other_currency';
  if (amount === undefined) return 'unclear_amount';
  return date === undefined ? 'no_date' : undefined;
}

const digestOf = (text: string): string => hash('sha256', text, 'base64url').slice(0, 32);

/** Returns an exact amount. ISO 20022 allows five decimals, of which all but two must be zeros. */
export function amountOf(text: string): AmountHundredths | undefined {
  const amount = /^\d+(\.\d+)?$/.test(text) ? parseAmount(text) : undefined;
  return amount?.ok ? amount.value : undefined;
}

/** Returns the date of a date or a time, whose offset is the bank's. PostgreSQL cannot parse the year 0000. */
export function dateOf(text: string): string | undefined {
  const [date] = /^[12]\d{3}-\d{2}-\d{2}(?=$|[TZ+-])/.exec(text) ?? [];
  return date !== undefined && parseTime(`${date}T00:00Z`) !== undefined ? date : undefined;
}

/** Returns a time that has an offset. A time without one could be in any time zone, so the date counts instead. */
function timeOf(text: string): Date | undefined {
  const ms = dateOf(text) === undefined ? undefined : parseTime(text);
  return ms === undefined ? undefined : new Date(ms);
}
