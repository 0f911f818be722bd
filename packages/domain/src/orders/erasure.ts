import { createHmac, timingSafeEqual } from 'node:crypto';
import type { AccountId } from '../accounts/account.ts';
import { joinEscaped } from '../signed-text.ts';
import type { Order, OrderFields } from './order.ts';
import type { OrderFieldName } from './order-fields.ts';

/**
 * The fields that hold or may hold personal data: a merchant can write anything into the note, return URL and checksum.
 */
export const personalFieldNames = [
  'order_note',
  'customer_name',
  'customer_email',
  'customer_phone',
  'customer_address_line1',
  'customer_address_line2',
  'customer_address_city',
  'customer_address_state',
  'customer_address_country',
  'customer_address_postal_code',
  'order_checksum',
  'return_url',
] as const satisfies readonly OrderFieldName[];

type PersonalFieldName = (typeof personalFieldNames)[number];

/** Whether a field is one of {@link personalFieldNames}. */
export function isPersonal(name: OrderFieldName): name is PersonalFieldName {
  return (personalFieldNames as readonly OrderFieldName[]).includes(name);
}

/**
 * Returns what is stored instead of the personal fields: empty strings, and the origin of the return URL, so that the
 * customer can return.
 */
export function erasedValues({ return_url }: OrderFields): Readonly<Record<PersonalFieldName, string>> {
  const empty = Object.fromEntries(personalFieldNames.map((name) => [name, '']));
  return { ...(empty as Record<PersonalFieldName, string>), return_url: `${new URL(return_url).origin}/` };
}

/**
 * Returns an HMAC-SHA256 of the merchant's id, the order_id and the personal fields except the checksum. It identifies
 * an erased order when the order is sent again. One digest covers all fields, because the digest of a country or a city
 * alone could be guessed. If a later version adds a personal field, join it only if it is not empty: the digests of
 * erased orders must stay the same. `key`: 32 bytes.
 */
export function erasureDigest(key: Uint8Array, merchantId: AccountId, fields: OrderFields): Uint8Array {
  const compared = personalFieldNames.filter((name) => name !== 'order_checksum').map((name) => fields[name]);
  return createHmac('sha256', key)
    .update(joinEscaped([`${merchantId}`, fields.order_id, ...compared]))
    .digest();
}

/**
 * Whether these fields have the personal data that was erased; always false if the key of the digest is not among
 * `keys`.
 */
export function matchesErased(
  { merchantId, erasedDigest }: Pick<Order, 'merchantId' | 'erasedDigest'>,
  fields: OrderFields,
  keys: readonly Uint8Array[],
): boolean {
  if (erasedDigest?.length !== 32) return false;
  return keys.some((key) => timingSafeEqual(erasureDigest(key, merchantId, fields), erasedDigest));
}
