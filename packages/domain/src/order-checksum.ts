import { createHmac, timingSafeEqual } from 'node:crypto';
import type { ChecksumMode } from './merchant.ts';
import { formatAmount } from './money.ts';
import type { OrderFields } from './order.ts';
import { orderFieldNames } from './order-fields.ts';

/** What a checksum that the gateway can verify begins with. */
export const checksumPrefix = 'v1=';

/**
 * The text that is hashed: the fifteen fields other than the checksum in the interface's order, joined by `|`, with `\` and
 * `|` in a value escaped by `\`, the amount with exactly two decimals, and an absent second address line empty. A new field
 * must not join them: merchants' checksums of today would no longer verify.
 */
export function canonicalText(fields: OrderFields): string {
  return orderFieldNames
    .filter((name) => name !== 'order_checksum')
    .map((name) => {
      const value = name === 'order_amount' ? formatAmount(fields.order_amount) : fields[name];
      return value.replaceAll(/[\\|]/g, '\\$&');
    })
    .join('|');
}

/** `v1=` and the lower-case hex of HMAC-SHA256 over the canonical text in UTF-8, keyed with the client secret. */
export function checksumOf(fields: OrderFields, clientSecret: string): string {
  return checksumPrefix + createHmac('sha256', clientSecret).update(canonicalText(fields), 'utf8').digest('hex');
}

/**
 * Judges an order's checksum. In the mode `versioned`, one that begins with `v1=` must verify and any other passes, because
 * the interface does not say how checksums are made; in the mode `required`, only a verified one passes. The comparison takes
 * the same time wherever the two differ.
 */
export function checkChecksum(
  fields: OrderFields,
  clientSecret: string,
  mode: ChecksumMode,
): 'passes' | 'does_not_verify' | 'not_versioned' {
  if (!fields.order_checksum.startsWith(checksumPrefix)) return mode === 'required' ? 'not_versioned' : 'passes';
  const expected = Buffer.from(checksumOf(fields, clientSecret));
  const given = Buffer.from(fields.order_checksum);
  return given.length === expected.length && timingSafeEqual(given, expected) ? 'passes' : 'does_not_verify';
}
