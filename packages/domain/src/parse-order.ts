import { minorUnitOf } from './currency.ts';
import { type FieldError, type FieldRule, fieldRules, textError } from './field-rules.ts';
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
} from './money.ts';
import type { OrderFields } from './order.ts';
import { type OrderFieldName, orderFieldNames, type RequestFieldName } from './order-fields.ts';
import { failed, type Result, success } from './result.ts';

/**
 * An order as an API received it: any values under the interface's names. The amount is a {@link NumberText} where the digits
 * that were sent are known, otherwise a number.
 */
export type OrderInput = Readonly<Partial<Record<RequestFieldName, unknown>>>;

type BrokenRule = Omit<FieldError, 'field'>;

const amountMessages: Readonly<Record<AmountError, string>> = {
  wrong_type: 'must be a number',
  too_precise: `must have at most ${amountDecimals} decimals`,
  out_of_range: `must be greater than 0 and at most ${formatAmount(amountHundredthsMax)}`,
};

/** All fields in one object: adding them one by one would change the object's hidden class 16 times. */
const noFields = Object.fromEntries(orderFieldNames.map((field) => [field, undefined])) as Record<
  OrderFieldName,
  undefined
>;

/**
 * Checks all fields. Returns the order's fields, or all invalid ones in the interface's order, each with the first rule that
 * it breaks. Never throws.
 */
export function parseOrder(input: OrderInput): Result<OrderFields, readonly FieldError[]> {
  const errors: FieldError[] = [];
  const fields: Record<OrderFieldName, string | AmountHundredths | undefined> = { ...noFields };
  for (const field of orderFieldNames) {
    const checked = checkField(fieldRules[field], input[field]);
    if (typeof checked === 'object') errors.push({ field, ...checked });
    else fields[field] = checked;
  }
  // True if there are no errors; until then a field may be undefined.
  const parsed = fields as OrderFields;
  const minorUnit = minorUnitOf(parsed.order_currency);
  if (minorUnit !== undefined && parsed.order_amount !== undefined && !fitsMinorUnit(parsed.order_amount, minorUnit)) {
    const error = { field: 'order_amount', code: 'too_precise', message: precisionMessage(minorUnit) } as const;
    errors.push(error);
    errors.sort((a, b) => orderFieldNames.indexOf(a.field) - orderFieldNames.indexOf(b.field));
  }
  return errors.length === 0 ? success(parsed) : failed(errors);
}

/** The field's value, or the first rule that it breaks. */
function checkField(rule: FieldRule, value: unknown): string | AmountHundredths | BrokenRule {
  if (value === undefined || value === null) {
    return rule.kind === 'text' && !rule.required ? '' : { code: 'missing', message: 'is required' };
  }
  if (rule.kind === 'amount') return checkAmount(value);
  if (typeof value !== 'string') return { code: 'wrong_type', message: 'must be a string' };
  if (rule.kind === 'text') return textError(rule, value) ?? value;
  return rule.values.includes(value) ? value : { code: 'not_allowed', message: rule.message };
}

function checkAmount(value: unknown): AmountHundredths | BrokenRule {
  const digits = value instanceof NumberText ? value.text : typeof value === 'number' ? digitsOfDouble(value) : '';
  const amount = parseAmount(digits);
  return amount.ok ? amount.value : { code: amount.failure, message: amountMessages[amount.failure] };
}

function precisionMessage(minorUnit: number): string {
  return minorUnit === 0
    ? 'must have no decimals in this currency'
    : `must have at most ${minorUnit} decimals in this currency`;
}
