import type { Failure } from '../failure.ts';
import { missing, type Received } from '../requests/check-field.ts';
import { type BrokenRule, notString } from '../requests/field-rules.ts';
import { failed, type Result, success } from '../result.ts';

/** One of the two ids that identify an order of a merchant. */
export type OrderKey =
  | { readonly by: 'order_id'; readonly orderId: string }
  | { readonly by: 'service_order_id'; readonly serviceOrderId: bigint };

/**
 * The key by which a merchant looks up an order: one of its ids, or the id of a payment that paid it or was refused for
 * it.
 */
export type OrderLookupKey = OrderKey | { readonly by: 'payment_id'; readonly paymentId: string };

/**
 * Reads one of the two ids of an order: a text, or an integer, which Protobuf's JSON form may also write as text. Any
 * text or integer is accepted; an id that no order can have matches none.
 */
export function parseOrderKey(input: Received<'order_id' | 'service_order_id'>): Result<OrderKey, Failure> {
  const { order_id: orderId, service_order_id: id } = input;
  const hasOrderId = orderId !== undefined && orderId !== null;
  if (id === undefined || id === null) {
    if (typeof orderId === 'string') return success({ by: 'order_id', orderId });
    const error: BrokenRule = hasOrderId ? notString : { ...missing, message: 'or service_order_id is required' };
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

/**
 * Reads the id by which GetOrder looks up an order, one of three. Any text is accepted as a payment_id, as in
 * {@link parseOrderKey}.
 */
export function parseOrderLookupKey(
  input: Received<'order_id' | 'service_order_id' | 'payment_id'>,
): Result<OrderLookupKey, Failure> {
  const { order_id, service_order_id, payment_id: paymentId } = input;
  const hasId = [order_id, service_order_id].some((id) => id !== undefined && id !== null);
  if (paymentId === undefined || paymentId === null) {
    if (hasId) return parseOrderKey({ order_id, service_order_id });
    const error: BrokenRule = { ...missing, message: 'or service_order_id or payment_id is required' };
    return failed({ kind: 'invalid_order', errors: [{ field: 'order_id', ...error }] });
  }
  if (typeof paymentId === 'string' && !hasId) return success({ by: 'payment_id', paymentId });
  const error: BrokenRule = hasId
    ? { code: 'not_allowed', message: 'must not be sent together with order_id or service_order_id' }
    : notString;
  return failed({ kind: 'invalid_request', errors: [{ field: 'payment_id', ...error }] });
}
