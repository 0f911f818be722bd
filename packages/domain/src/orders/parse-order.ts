import type { AmountHundredths } from '../money/money.ts';
import { checkField, checkPrecision, type Received } from '../requests/check-field.ts';
import type { FieldError } from '../requests/field-rules.ts';
import { failed, type Result, success } from '../result.ts';
import { canonicalLocale } from './locale.ts';
import { type Metadata, parseMetadata } from './metadata.ts';
import type { OrderFields } from './order.ts';
import { parseExpiry } from './order-expiry.ts';
import { fieldRules } from './order-field-rules.ts';
import { type OrderFieldName, orderFieldNames, type RequestFieldName } from './order-fields.ts';

/**
 * An order as an API received it: any values under the names of the API contract. The amount is a `NumberText` if the
 * digits that were sent are known, otherwise a number.
 */
export type OrderInput = Received<RequestFieldName>;

/** A received order whose members are all valid. */
export interface ParsedOrder {
  readonly fields: OrderFields;
  /** In milliseconds since 1970-01-01 UTC; `undefined`: not sent. Its range is checked for new orders only. */
  readonly expiresAtMs: number | undefined;
  /** `undefined`: not sent. */
  readonly metadata: Metadata | undefined;
}

/** Declares all fields at once. Adding them one by one would change the object's hidden class for each field. */
const noFields = Object.fromEntries(orderFieldNames.map((field) => [field, undefined])) as Record<
  OrderFieldName,
  undefined
>;

/**
 * Checks all members. Returns the order, or an error for each invalid member in the order of the API contract, with the
 * first rule that the member breaks. A valid `customer_locale` is converted to its canonical form. An invalid one is
 * ignored, because it is only a hint, unless `isStrict` is set. Never throws.
 */
export function parseOrder(
  input: OrderInput,
  { isStrict = false }: { readonly isStrict?: boolean } = {},
): Result<ParsedOrder, readonly FieldError<string>[]> {
  const fields = parseFields(input, isStrict);
  const expiry = parseExpiry(input.order_expires_at);
  const metadata = parseMetadata(input.metadata);
  if (fields.ok && expiry.ok && metadata.ok) {
    return success({ fields: fields.value, expiresAtMs: expiry.value, metadata: metadata.value });
  }
  return failed([
    ...(fields.ok ? [] : fields.failure),
    ...(expiry.ok ? [] : [expiry.failure]),
    ...(metadata.ok ? [] : metadata.failure),
  ]);
}

function parseFields(input: OrderInput, isStrict: boolean): Result<OrderFields, readonly FieldError<OrderFieldName>[]> {
  const errors: FieldError<OrderFieldName>[] = [];
  const fields: Record<OrderFieldName, string | AmountHundredths | undefined> = { ...noFields };
  for (const field of orderFieldNames) {
    const checked = checkField(fieldRules[field], input[field]);
    if (typeof checked !== 'object') fields[field] = checked;
    else if (field !== 'customer_locale' || isStrict) errors.push({ field, ...checked });
  }
  fields.customer_locale = canonicalLocale(String(fields.customer_locale ?? ''));
  // The cast is valid only if there are no errors. Until then, a field may be undefined.
  const parsed = fields as OrderFields;
  const tooPrecise = checkPrecision(parsed.order_amount, parsed.order_currency);
  if (tooPrecise !== undefined) {
    errors.push({ field: 'order_amount', ...tooPrecise });
    errors.sort((a, b) => orderFieldNames.indexOf(a.field) - orderFieldNames.indexOf(b.field));
  }
  return errors.length === 0 ? success(parsed) : failed(errors);
}
