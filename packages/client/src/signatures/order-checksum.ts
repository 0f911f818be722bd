import type { NewOrder } from '../types.ts';
import { bytesOf, hmacHex } from './signatures.ts';

/**
 * The fields that a checksum covers, in the order in which they are hashed. This list is frozen: new order fields are
 * never added.
 */
const checksumFieldNames = [
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
] as const satisfies readonly (keyof NewOrder)[];

/**
 * Returns `v1=` and the lower-case hex of HMAC-SHA256 over the order, keyed with the client secret. `createOrder` adds
 * it automatically. Throws a RangeError if the amount has more than two decimals.
 */
export async function orderChecksum(order: NewOrder, clientSecret: string): Promise<string> {
  const values = checksumFieldNames.map((name) =>
    name === 'order_amount' ? formatAmount(order.order_amount) : String(order[name] ?? ''),
  );
  return `v1=${await hmacHex(bytesOf(clientSecret), bytesOf(joinEscaped(values)))}`;
}

/** Joins values with `|`. In a value, `\` is escaped as `\\` and `|` as `\|`. */
export function joinEscaped(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(/[\\|]/g, '\\$&')).join('|');
}

const amountForm = /^(0|[1-9]\d*)(?:\.(\d{1,2})0*)?$/;

/** Returns the amount with exactly two decimals, as a JSON number: `10.00`. Throws a RangeError instead of rounding. */
export function formatAmount(amount: number | string): string {
  const [, integer, decimals = ''] = amountForm.exec(String(amount)) ?? [];
  if (integer === undefined) {
    throw new RangeError(
      `order_amount ${amount} must be a decimal number without a sign and with at most two decimals, such as '10.00'`,
    );
  }
  return `${integer}.${decimals.padEnd(2, '0')}`;
}
