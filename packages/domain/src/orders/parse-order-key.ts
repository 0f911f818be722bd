import type { Failure } from '../failure.ts';
import { missing } from '../requests/check-field.ts';
import type { BrokenRule } from '../requests/field-rules.ts';
import { failed, type Result, success } from '../result.ts';

/** One of the two ids that identify an order of a merchant. */
export type OrderKey =
  | { readonly by: 'order_id'; readonly orderId: string }
  | { readonly by: 'service_order_id'; readonly serviceOrderId: bigint };

/**
 * Reads one of the two ids of an order: a text, or an integer, which Protobuf's JSON form may also write as text. Any
 * text or integer is accepted; an id that no order can have finds none.
 */
export function parseOrderKey(
  input: Readonly<Partial<Record<'order_id' | 'service_order_id', unknown>>>,
): Result<OrderKey, Failure> {
  const { order_id: orderId, service_order_id: id } = input;
  const hasOrderId = orderId !== undefined && orderId !== null;
  if (id === undefined || id === null) {
    if (typeof orderId === 'string') return success({ by: 'order_id', orderId });
    const error: BrokenRule = hasOrderId
      ? { code: 'wrong_type', message: 'must be a string' }
      : { ...missing, message: 'or service_order_id is required' };
    return failed({ kind: 'invalid_order', errors: [{ field: 'order_id', ...error }] });
  }
  const isInteger =
    typeof id === 'bigint' || Number.isInteger(id) || (typeof id === 'string' && /^-?\d{1,20}$/.test(id));
  if (isInteger && !hasOrderId) {
    return success({ by: 'service_order_id', serviceOrderId: BigInt(id as bigint | number | string) });
  }
  const error: BrokenRule = hasOrderId
    ? { code: 'not_allowed', message: 'must not be sent together with order_id' }
    : { code: 'wrong_type', message: 'must be an integer' };
  return failed({ kind: 'invalid_request', errors: [{ field: 'service_order_id', ...error }] });
}
