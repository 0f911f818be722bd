import type { ChecksumMode } from '../accounts/account.ts';
import type { Failure } from '../failure.ts';
import { formatAmount } from '../money/money.ts';
import type { OrderFields } from '../orders/order.ts';
import type { OrderFieldName } from '../orders/order-fields.ts';
import { equalsSecret, joinEscaped, signaturePrefix, signText } from '../signed-text.ts';

/**
 * The fields that a checksum covers, in the order in which they are hashed. This list is frozen, because adding or
 * moving a field would invalidate every checksum that merchants make today. Do not add a new order field here.
 */
export const checksumFieldNames = [
  'order_id',
  'order_amount',
  'order_currency',
  'order_note',
  'service_type',
  'customer_name',
  'customer_email',
  'customer_phone',
  'customer_address_line1',
  'customer_address_line2',
  'customer_address_city',
  'customer_address_state',
  'customer_address_country',
  'customer_address_postal_code',
  'return_url',
] as const satisfies readonly OrderFieldName[];

/**
 * Returns the text that is hashed: the values of {@link checksumFieldNames}, joined by {@link joinEscaped}. The amount
 * has exactly two decimals, and an absent second address line is empty.
 */
export function canonicalText(fields: OrderFields): string {
  return joinEscaped(
    checksumFieldNames.map((name) => (name === 'order_amount' ? formatAmount(fields.order_amount) : fields[name])),
  );
}

/**
 * Returns `v1=` and the lower-case hex of HMAC-SHA256 over the canonical text in UTF-8, keyed with the client secret.
 */
export function checksumOf(fields: OrderFields, clientSecret: string): string {
  return signText(canonicalText(fields), clientSecret);
}

/**
 * Checks an order's checksum according to the merchant's mode (see `checksumModes`). Returns the failure, or
 * `undefined` if the checksum is accepted. An unversioned checksum is accepted by default, because the API contract
 * does not define how checksums are made. The comparison takes constant time.
 */
export function checksumFailure(fields: OrderFields, clientSecret: string, mode: ChecksumMode): Failure | undefined {
  if (!fields.order_checksum.startsWith(signaturePrefix)) {
    if (mode !== 'required') return undefined;
    const message = `must begin with ${signaturePrefix}`;
    return { kind: 'invalid_order', errors: [{ field: 'order_checksum', code: 'not_allowed', message }] };
  }
  const isMatch = equalsSecret(fields.order_checksum, checksumOf(fields, clientSecret));
  return isMatch ? undefined : { kind: 'checksum_mismatch', canonicalText: canonicalText(fields) };
}
