import type { AccountId } from '../accounts/account.ts';
import type { AmountHundredths } from '../money/money.ts';
import { disputeStatuses, refundStatuses } from '../orders/order.ts';
import { fieldRules } from '../orders/order-field-rules.ts';
import type { RefundPosition } from '../orders/order-store.ts';
import { readPosition } from '../orders/parse-order-list.ts';
import type { ReportedDispute, ReportedRefund, RequestedRefund } from '../orders/refund-decisions.ts';
import {
  absentIfEmpty,
  checkAnyText,
  checkField,
  checkPrecision,
  errorsIn,
  type InvalidRequest,
  missing,
  unlessInvalid,
} from '../requests/check-field.ts';
import { type FieldRule, textRule } from '../requests/field-rules.ts';
import { checkTime } from '../requests/iso-time.ts';
import {
  cursorOf,
  knownParameters,
  type ListInput,
  type ParsedList,
  readLimit,
  scopeOf,
} from '../requests/list-parameters.ts';
import type { Result } from '../result.ts';
import { noteRule, paymentIdRule } from './parse-payment.ts';

/** A request about a refund or dispute as an API received it: any values under the names of the fields. */
type Input = Readonly<Record<string, unknown>>;

/** The rule for the reason of a refund or dispute: a provider's short code. */
const reasonRule = textRule(128, { required: false });

const statusRule = (values: readonly string[]): FieldRule => ({
  kind: 'choice',
  values,
  message: `must be one of ${values.join(', ')}`,
});

const refundStatusRule = statusRule(refundStatuses);
const disputeStatusRule = statusRule(disputeStatuses);

/** Checks the fields of a refund that a merchant requests, as `parsePayment` does. */
export function parseRefund(input: Input): Result<RequestedRefund, InvalidRequest> {
  const { refund_amount } = input;
  const isWhole = refund_amount === undefined || refund_amount === null;
  const checked = {
    refund_id: checkField(paymentIdRule, absentIfEmpty(input.refund_id)),
    refund_amount: isWhole ? undefined : checkField(fieldRules.order_amount, refund_amount),
    refund_note: checkField(noteRule, absentIfEmpty(input.refund_note)),
  };
  return unlessInvalid(errorsIn(checked), {
    refundId: checked.refund_id as string,
    amount: checked.refund_amount as AmountHundredths | undefined,
    note: (checked.refund_note as string) || undefined,
  });
}

/** Checks the fields of a refund that a checkout system reports. */
export function parseReportedRefund(
  checkoutId: AccountId,
  input: Input,
): Result<ReportedRefund & { readonly orderToken: string }, InvalidRequest> {
  const refundedAt = absentIfEmpty(input.refunded_at) ?? undefined;
  const checked = {
    ...checkReport(input),
    refund_id: checkOptionalId(input.refund_id),
    provider_refund_id: checkOptionalId(input.provider_refund_id),
    status: checkField(refundStatusRule, sentStatus(input.status)),
    refunded_at: refundedAt === undefined ? undefined : checkTime(refundedAt),
  };
  const isUnnamed = checked.refund_id === '' || checked.status !== 'FAILED';
  const errors = errorsIn({
    ...checked,
    ...(checked.provider_refund_id === '' && isUnnamed && { provider_refund_id: missing }),
  });
  return unlessInvalid(errors, {
    checkoutId,
    ...reportOf(checked),
    refundId: (checked.refund_id as string) || null,
    providerRefundId: (checked.provider_refund_id as string) || null,
    status: checked.status as ReportedRefund['status'],
    refundedAtMs: (checked.refunded_at as number | undefined) ?? null,
  });
}

/** Checks an id that may be absent, but not blank. */
function checkOptionalId(value: unknown) {
  const id = absentIfEmpty(value) ?? undefined;
  return id === undefined ? '' : checkField(paymentIdRule, id);
}

/** Checks the fields of a dispute that a checkout system reports. */
export function parseReportedDispute(
  checkoutId: AccountId,
  input: Input,
): Result<ReportedDispute & { readonly orderToken: string }, InvalidRequest> {
  const values = {
    ...checkReport(input),
    dispute_id: checkField(paymentIdRule, absentIfEmpty(input.dispute_id)),
    currency: checkField(fieldRules.order_currency, absentIfEmpty(input.currency)),
    status: checkField(disputeStatusRule, sentStatus(input.status)),
  };
  const checked = { ...values, amount: checkPrecision(values.amount, values.currency) ?? values.amount };
  return unlessInvalid(errorsIn(checked), {
    checkoutId,
    ...reportOf(checked),
    disputeId: checked.dispute_id as string,
    currency: checked.currency as string,
    status: checked.status as ReportedDispute['status'],
  });
}

/** Returns a status, or `undefined` for the value that Protobuf uses if none was sent. */
function sentStatus(status: unknown): unknown {
  return String(status).endsWith('_UNSPECIFIED') ? undefined : status;
}

function checkReport(input: Input) {
  return {
    order_token: checkAnyText(input.order_token),
    payment_id: checkField(paymentIdRule, absentIfEmpty(input.payment_id)),
    amount: checkField(fieldRules.order_amount, input.amount),
    reason: checkField(reasonRule, absentIfEmpty(input.reason)),
  };
}

function reportOf(checked: ReturnType<typeof checkReport>) {
  return {
    orderToken: checked.order_token as string,
    paymentId: checked.payment_id as string,
    amount: checked.amount as AmountHundredths,
    reason: (checked.reason as string) || null,
  };
}

/** Checks the parameters of a list of pending refunds as `parseOrderList` does. */
export function parseRefundList(
  checkoutId: AccountId,
  input: ListInput,
): ParsedList<{ readonly after: RefundPosition | undefined }, RefundPosition> {
  const { values, errors } = knownParameters(input, ['limit', 'cursor']);
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf('refunds', checkoutId);
  const after = readPosition(values.cursor, scope, errors);
  return unlessInvalid(errors, {
    filter: { after, limit },
    cursorAfter: (last) => cursorOf(scope, last.createdAtMs, last.serviceOrderId),
  });
}
