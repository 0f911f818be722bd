import { minorUnitOf } from './currency.ts';
import { type ChoiceRule, type FieldError, fieldRules, type TextRule, textFault } from './field-rules.ts';
import {
  type AmountFault,
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
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';
import { failed, type Result, success } from './result.ts';

/**
 * An order as a door received it: any values under the interface's names. The amount is a {@link NumberText} where the door
 * knows the digits that were sent, a number where it has a double only.
 */
export type OrderInput = Readonly<Partial<Record<OrderFieldName, unknown>>>;

const amountFaultsTold: Readonly<Record<AmountFault, string>> = {
  wrong_type: 'must be a number',
  too_precise: `must have at most ${amountDecimals} decimals`,
  out_of_range: `must be greater than 0 and at most ${formatAmount(amountHundredthsMax)}`,
};

/** All fields, so that an order's object has room for them from the start. */
const noFields = Object.fromEntries(orderFieldNames.map((field) => [field, undefined])) as Record<
  OrderFieldName,
  undefined
>;

/**
 * Checks every field and gives the order's fields, or all broken ones at once, in the interface's order, each with the first
 * rule that it breaks. Never throws, whatever the values under the names are.
 */
export function parseOrder(input: OrderInput): Result<OrderFields, readonly FieldError[]> {
  const errors: FieldError[] = [];
  const fields: Record<OrderFieldName, string | AmountHundredths | undefined> = { ...noFields };
  for (const field of orderFieldNames) {
    fields[field] = parseField(field, input[field], errors);
  }
  // Every field without an error has its value by now: this is the one place where that is taken as proved.
  const parsed = fields as OrderFields;
  const minorUnit = minorUnitOf(parsed.order_currency);
  if (minorUnit !== undefined && parsed.order_amount !== undefined && !fitsMinorUnit(parsed.order_amount, minorUnit)) {
    const error = { field: 'order_amount', code: 'too_precise', message: preciseTold(minorUnit) } as const;
    errors.push(error);
    errors.sort((a, b) => orderFieldNames.indexOf(a.field) - orderFieldNames.indexOf(b.field));
  }
  return errors.length === 0 ? success(parsed) : failed(errors);
}

function parseField(
  field: OrderFieldName,
  value: unknown,
  errors: FieldError[],
): string | AmountHundredths | undefined {
  const rule = fieldRules[field];
  const absent = value === undefined || value === null;
  if (absent && rule.kind === 'text' && !rule.required) return '';
  if (absent) {
    errors.push({ field, code: 'missing', message: 'is required' });
    return undefined;
  }
  switch (rule.kind) {
    case 'amount':
      return parseAmountField(field, value, errors);
    case 'choice':
      return parseChoice(field, rule, value, errors);
    case 'text':
      return parseText(field, rule, value, errors);
  }
}

function parseAmountField(field: OrderFieldName, value: unknown, errors: FieldError[]): AmountHundredths | undefined {
  const digits = value instanceof NumberText ? value.text : typeof value === 'number' ? digitsOfDouble(value) : '';
  const amount = parseAmount(digits);
  if (amount.ok) return amount.value;
  errors.push({ field, code: amount.failure, message: amountFaultsTold[amount.failure] });
  return undefined;
}

function parseChoice(
  field: OrderFieldName,
  rule: ChoiceRule,
  value: unknown,
  errors: FieldError[],
): string | undefined {
  if (typeof value !== 'string') errors.push({ field, code: 'wrong_type', message: 'must be a string' });
  else if (!rule.values.includes(value)) errors.push({ field, code: 'not_allowed', message: rule.told });
  else return value;
  return undefined;
}

function parseText(field: OrderFieldName, rule: TextRule, value: unknown, errors: FieldError[]): string | undefined {
  if (typeof value !== 'string') {
    errors.push({ field, code: 'wrong_type', message: 'must be a string' });
    return undefined;
  }
  const fault = textFault(rule, value);
  if (fault === undefined) return value;
  errors.push({ field, code: fault.code, message: fault.told });
  return undefined;
}

function preciseTold(minorUnit: number): string {
  return minorUnit === 0
    ? 'must have no decimals in this currency'
    : `must have at most ${minorUnit} decimals in this currency`;
}
