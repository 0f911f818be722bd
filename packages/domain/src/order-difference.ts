import type { OrderFields } from './order.ts';
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';

/**
 * The fields in which two orders differ, in the interface's order; none means that the second is the first sent again. The
 * checksum does not count, because a rotated secret changes it and not the order.
 */
export function orderDifference(first: OrderFields, second: OrderFields): OrderFieldName[] {
  return orderFieldNames.filter((name) => name !== 'order_checksum' && first[name] !== second[name]);
}
