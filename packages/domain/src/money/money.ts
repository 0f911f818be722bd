import { failed, type Result, success } from '../result.ts';

declare const amountBrand: unique symbol;

/** An order's amount: an exact count of hundredths of the currency's unit, from 1 to {@link amountHundredthsMax}. */
export type AmountHundredths = bigint & { readonly [amountBrand]: true };

/** A number as the caller wrote it: its digits, before any rounding to a float. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** 9,999,999,999,999.99: 15 digits, the most that a double stores exactly (`DBL_DIG` in C). */
export const amountHundredthsMax = 999_999_999_999_999n as AmountHundredths;

/** The number of decimal places with which the API sends amounts. */
export const amountDecimals = 2;

/** The maximum number of digits before the decimal point. The maximum amount is all nines, so it is enough to count. */
const integerDigitsMax = amountHundredthsMax.toString().length - amountDecimals;

/** The field error code of a number that is not a valid amount. */
export type AmountError = 'wrong_type' | 'too_precise' | 'out_of_range';

const numberForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * Parses an amount from the digits of a JSON number, exactly and without floats. The exponent may have any size,
 * because only the position of the decimal point is computed and the number is never expanded.
 */
export function parseAmount(digits: string): Result<AmountHundredths, AmountError> {
  const parts = numberForm.exec(digits);
  if (parts === null) return failed('wrong_type');
  const [, sign, integer = '', fraction = '', exponent = '0'] = parts;
  const significant = (integer + fraction).replace(/^0+/, '');
  const trimmed = withoutTrailingZeros(significant);
  if (trimmed === '' || sign === '-') return failed('out_of_range');
  const decimals = fraction.length - Number(exponent) - (significant.length - trimmed.length);
  if (trimmed.length - decimals > integerDigitsMax) return failed('out_of_range');
  if (decimals > amountDecimals) return failed('too_precise');
  return success(BigInt(trimmed.padEnd(trimmed.length + amountDecimals - decimals, '0')) as AmountHundredths);
}

/** Uses a loop, because a pattern such as /0+$/ takes quadratic time on a long run of zeros that is not at the end. */
function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

/** Returns the shortest decimal that reads back as the same double (Number::toString of ECMAScript). */
export function digitsOfDouble(value: number): string {
  return String(value);
}

/** Whether a currency with this minor unit can express the amount: 100.50 needs at least one decimal. */
export function fitsMinorUnit(amount: AmountHundredths, minorUnit: number): boolean {
  return minorUnit >= amountDecimals || amount % 10n ** BigInt(amountDecimals - minorUnit) === 0n;
}

/** Formats the amount with exactly two decimals and no grouping, such as `10.00`. */
export function formatAmount(amount: AmountHundredths): string {
  const digits = amount.toString().padStart(amountDecimals + 1, '0');
  return `${digits.slice(0, -amountDecimals)}.${digits.slice(-amountDecimals)}`;
}
