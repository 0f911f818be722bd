import type { AmountHundredths } from '../money/money.ts';
import { fieldRules } from '../orders/order-field-rules.ts';
import {
  absentIfEmpty,
  checkAnyText,
  checkField,
  checkPrecision,
  errorsIn,
  type InvalidRequest,
  missing,
  type Received,
  unlessInvalid,
} from '../requests/check-field.ts';
import { type BrokenRule, textRule } from '../requests/field-rules.ts';
import { checkDate, checkTime } from '../requests/iso-time.ts';
import type { Result } from '../result.ts';

/** A payment as an API received it. The amount has the form that `OrderInput` describes. */
export type PaymentInput = Received<
  'order_token' | 'payment_id' | 'paid_at' | 'paid_on' | 'order_amount' | 'order_currency' | 'attempt_id'
>;

/** How long a payment attempt claims an order, in seconds: at most 7 days. */
export const leaseSeconds = { min: 60, max: 604_800, byDefault: 900 } as const;

/** A payment attempt as an API received it. */
export type AttemptInput = Received<'order_token' | 'attempt_id' | 'lease_seconds'>;

/** The rule for payment_id and attempt_id. */
export const paymentIdRule = textRule(128);

const optionalIdRule = { ...paymentIdRule, required: false };

/**
 * Checks all fields of a payment; amount and currency follow the same rules as those of an order. An empty text counts
 * as absent, because Protobuf does not distinguish them. Returns the fields, or an error for each invalid one. Never
 * throws.
 */
export function parsePayment(input: PaymentInput) {
  const values = {
    order_token: checkAnyText(input.order_token),
    payment_id: checkField(paymentIdRule, absentIfEmpty(input.payment_id)),
    ...checkPaid(absentIfEmpty(input.paid_at), absentIfEmpty(input.paid_on)),
    order_amount: checkField(fieldRules.order_amount, input.order_amount),
    order_currency: checkField(fieldRules.order_currency, absentIfEmpty(input.order_currency)),
    attempt_id: checkField(optionalIdRule, input.attempt_id),
  };
  const tooPrecise = checkPrecision(values.order_amount, values.order_currency);
  const checked = { ...values, order_amount: tooPrecise ?? values.order_amount };
  return unlessInvalid(errorsIn(checked), {
    /** Any text. A text that is not the token of a payment link finds no order. */
    orderToken: checked.order_token as string,
    paymentId: checked.payment_id as string,
    ...paidTimes(checked, input),
    amount: checked.order_amount as AmountHundredths,
    currency: checked.order_currency as string,
    /** The attempt that took the payment; absent if the payment was not started by StartPayment. */
    attemptId: (checked.attempt_id as string) || undefined,
  });
}

/** A payment that a merchant records itself, as an API received it. */
export type ManualPaymentInput = Received<'payment_id' | 'paid_at' | 'paid_on' | 'payment_note'>;

/** The rule for a merchant's note about a payment that it records itself, or about a refund. */
export const noteRule = textRule(1_000, { required: false, multiline: true });

/** Checks the fields of a payment that a merchant records itself, as {@link parsePayment} does. */
export function parseManualPayment(input: ManualPaymentInput) {
  const checked = {
    payment_id: checkField(paymentIdRule, absentIfEmpty(input.payment_id)),
    ...checkPaid(absentIfEmpty(input.paid_at), absentIfEmpty(input.paid_on)),
    payment_note: checkField(noteRule, absentIfEmpty(input.payment_note)),
  };
  return unlessInvalid(errorsIn(checked), {
    paymentId: checked.payment_id as string,
    ...paidTimes(checked, input),
    /** The merchant's note; absent if there is none. */
    note: (checked.payment_note as string) || undefined,
  });
}

/** Checks the fields of a payment attempt, as {@link parsePayment} does. Without lease_seconds the default applies. */
export function parseAttempt(input: AttemptInput) {
  const orderToken = checkAnyText(input.order_token);
  const attemptId = checkField(paymentIdRule, absentIfEmpty(input.attempt_id));
  const seconds = checkLeaseSeconds(input.lease_seconds);
  const checked = { order_token: orderToken, attempt_id: attemptId, lease_seconds: seconds };
  return unlessInvalid(errorsIn(checked), {
    orderToken: orderToken as string,
    attemptId: attemptId as string,
    leaseSeconds: seconds as number,
  });
}

/** Reads an integer, which the JSON form of Protobuf may also write as text. */
function checkLeaseSeconds(value: unknown): number | BrokenRule {
  if (value === undefined || value === null) return leaseSeconds.byDefault;
  const { min, max } = leaseSeconds;
  const seconds = typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value;
  if (!Number.isInteger(seconds)) return { code: 'wrong_type', message: 'must be an integer' };
  if (Number(seconds) >= min && Number(seconds) <= max) return Number(seconds);
  return { code: 'out_of_range', message: `must be ${min} to ${max}` };
}

/** Returns the order_token of a request, or an error if it is absent, empty or not a string. */
export function parseLinkToken(input: PaymentInput): Result<string, InvalidRequest> {
  const token = checkAnyText(input.order_token);
  return unlessInvalid(errorsIn({ order_token: token }), token as string);
}

/** Checks the time and the date of a payment, exactly one of which must be sent. */
function checkPaid(at: unknown, on: unknown) {
  const isAbsent = (value: unknown) => value === undefined || value === null;
  if (isAbsent(on)) return { paid_at: isAbsent(at) ? missing : checkTime(at), paid_on: undefined };
  if (isAbsent(at)) return { paid_at: undefined, paid_on: checkDate(on) };
  const message = 'must not be sent together with paid_at';
  return { paid_at: undefined, paid_on: { code: 'not_allowed', message } as const };
}

/** Returns the time of a payment, and the date if one was sent. Both were checked by {@link checkPaid}. */
function paidTimes(checked: ReturnType<typeof checkPaid>, input: Pick<PaymentInput, 'paid_on'>) {
  return {
    /**
     * When the customer paid, in milliseconds since 1970-01-01 UTC. Its range depends on the order: see
     * `order-states.ts`.
     */
    paidAtMs: (checked.paid_on ?? checked.paid_at) as number,
    /** The date that was sent instead of a time. `paidAtMs` is its beginning in UTC. */
    paidOn: checked.paid_on === undefined ? undefined : (input.paid_on as string),
  };
}
