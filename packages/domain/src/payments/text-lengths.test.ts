import { expect, it } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import type { InvalidRequest } from '../requests/check-field.ts';
import type { Result } from '../result.ts';
import { parseAttempt, parseManualPayment, parsePayment } from './parse-payment.ts';
import { parseRefund, parseReportedDispute, parseReportedRefund } from './parse-refund.ts';

type Parse = (input: Readonly<Record<string, unknown>>) => Result<unknown, InvalidRequest>;

const checkoutId = '1' as unknown as AccountId;

it.each([
  ['a payment', 'payment_id', 128, parsePayment],
  ['a payment', 'attempt_id', 128, parsePayment],
  ['an attempt', 'attempt_id', 128, parseAttempt],
  ['a manual payment', 'payment_id', 128, parseManualPayment],
  ['a manual payment', 'payment_note', 1_000, parseManualPayment],
  ['a refund', 'refund_id', 128, parseRefund],
  ['a refund', 'refund_note', 1_000, parseRefund],
  ['a reported refund', 'provider_refund_id', 128, (input) => parseReportedRefund(checkoutId, input)],
  ['a reported refund', 'reason', 128, (input) => parseReportedRefund(checkoutId, input)],
  ['a reported dispute', 'dispute_id', 128, (input) => parseReportedDispute(checkoutId, input)],
] satisfies [string, string, number, Parse][])('%s: %s has at most %i characters', (_request, field, max, parse) => {
  const codesOf = (length: number) => {
    const parsed = parse({ [field]: '😀'.repeat(length) });
    return parsed.ok ? [] : parsed.failure.errors.filter((error) => error.field === field).map(({ code }) => code);
  };
  expect([codesOf(max), codesOf(max + 1)]).toEqual([[], ['too_long']]);
});
