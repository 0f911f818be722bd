import { minorUnitOf } from '../money/currency.ts';
import {
  type AmountError,
  type AmountHundredths,
  amountDecimals,
  amountHundredthsMax,
  digitsOfDouble,
  fitsMinorUnit,
  formatAmount,
  NumberText,
  parseAmount,
} from '../money/money.ts';
import { failed, type Result, success } from '../result.ts';
import { type BrokenRule, type FieldError, type FieldRule, notString, textError } from './field-rules.ts';

/** The members of a request as an API received it: any values under these names. */
export type Received<Name extends string> = Readonly<Partial<Record<Name, unknown>>>;

/** The error of a required field that is absent. */
export const missing: BrokenRule = { code: 'missing', message: 'is required' };

const amountMessages: Readonly<Record<AmountError, string>> = {
  wrong_type: 'must be a number',
  too_precise: `must have at most ${amountDecimals} decimals`,
  out_of_range: `must be greater than 0 and at most ${formatAmount(amountHundredthsMax)}`,
};

/** Returns the field's value, `''` for an absent optional text, or the first rule that the value breaks. */
export function checkField(rule: FieldRule, value: unknown): string | AmountHundredths | BrokenRule {
  if (value === undefined || value === null) {
    return rule.kind === 'text' && !rule.required ? '' : missing;
  }
  if (rule.kind === 'amount') return checkAmount(value);
  if (typeof value !== 'string') return notString;
  if (rule.kind === 'text') return textError(rule, value) ?? value;
  return rule.values.includes(value) ? value : { code: 'not_allowed', message: rule.message };
}

function checkAmount(value: unknown): AmountHundredths | BrokenRule {
  const digits = value instanceof NumberText ? value.text : typeof value === 'number' ? digitsOfDouble(value) : '';
  const amount = parseAmount(digits);
  return amount.ok ? amount.value : { code: amount.failure, message: amountMessages[amount.failure] };
}

/**
 * Returns the error of an amount that has more decimals than its currency allows; `undefined` if there is no such
 * error, or if the amount or currency is invalid.
 */
export function checkPrecision(amount: unknown, currency: unknown): BrokenRule | undefined {
  if (typeof amount !== 'bigint' || typeof currency !== 'string') return undefined;
  const minorUnit = minorUnitOf(currency);
  if (minorUnit === undefined || fitsMinorUnit(amount as AmountHundredths, minorUnit)) return undefined;
  return { code: 'too_precise', message: 'must have no decimals in this currency' };
}

/** Returns the value, or `undefined` for an empty text, which Protobuf does not distinguish from an absent one. */
export function absentIfEmpty(value: unknown): unknown {
  return value === '' ? undefined : value;
}

/** Returns a required text that may have any form, or the rule that the value breaks. */
export function checkAnyText(value: unknown): string | BrokenRule {
  const text = absentIfEmpty(value);
  if (text === undefined || text === null) return missing;
  return typeof text === 'string' ? text : notString;
}

/** Returns an error for each field whose check returned a broken rule instead of a value. */
export function errorsIn<Field extends string>(checked: Readonly<Record<Field, unknown>>): FieldError<Field>[] {
  return Object.entries<unknown>(checked).flatMap(([field, value]) =>
    typeof value === 'object' && value !== null && 'code' in value
      ? [{ field: field as Field, ...(value as BrokenRule) }]
      : [],
  );
}

/** The failure of a request that has invalid fields or parameters. */
export interface InvalidRequest {
  readonly kind: 'invalid_request';
  readonly errors: readonly FieldError[];
}

/** Returns the request as it was parsed, or its failure if there are errors. */
export function unlessInvalid<Parsed>(errors: readonly FieldError[], parsed: Parsed): Result<Parsed, InvalidRequest> {
  return errors.length === 0 ? success(parsed) : failed({ kind: 'invalid_request', errors });
}
