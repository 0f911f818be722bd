import type { OrderFields } from './order.ts';
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';

/**
 * The fields in which two orders differ, in the interface's order; empty if the second is the first one sent again. The checksum
 * is not compared, because a new client secret changes it although the order is the same.
 */
export function orderDifference(first: OrderFields, second: OrderFields): OrderFieldName[] {
  return orderFieldNames.filter((name) => name !== 'order_checksum' && first[name] !== second[name]);
}
