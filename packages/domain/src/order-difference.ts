import { isPersonal, matchesErased } from './erasure.ts';
import type { Order, OrderFields } from './order.ts';
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';

/**
 * The fields in which a stored order differs from a received one, in the order of the API contract; empty for a replay. The
 * checksum is not compared, because a new client secret changes it although the order is the same. If the personal data was
 * erased, either all personal fields differ or none. Deciding this takes the erasure key; without it they all differ.
 */
export function orderDifference(
  first: Pick<Order, 'merchantId' | 'erasedDigest' | 'fields'>,
  second: OrderFields,
  erasureKeys: readonly Uint8Array[] = [],
): OrderFieldName[] {
  const isErased = first.erasedDigest !== null;
  const isSame = isErased && matchesErased(first, second, erasureKeys);
  return orderFieldNames.filter((name) => {
    if (name === 'order_checksum') return false;
    return isErased && isPersonal(name) ? !isSame : first.fields[name] !== second[name];
  });
}
