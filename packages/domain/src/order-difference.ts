import { isPersonal, matchesErased } from './erasure.ts';
import type { Order, OrderFields } from './order.ts';
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';

/**
 * The fields in which a stored order differs from one that is sent, in the interface's order; empty if it is sent again. The
 * checksum is not compared, because a new client secret changes it although the order is the same. If the stored order's personal
 * data was erased, all of these fields differ or none, which only the key of the erasure shows: without it they differ.
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
