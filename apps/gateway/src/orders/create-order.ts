import type { Failure } from '@gateway/domain/failure';
import { type Order, openOrder } from '@gateway/domain/order';
import { canonicalText, checkChecksum, checksumPrefix } from '@gateway/domain/order-checksum';
import { orderDifference } from '@gateway/domain/order-difference';
import { createOrderToken } from '@gateway/domain/order-token';
import { type OrderInput, parseOrder } from '@gateway/domain/parse-order';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { settledWithin, storageFailure } from '../storage-outcome.ts';

/** The result of a creation. */
export interface CreatedOrder {
  readonly order: Order;
  /** Whether the same order was stored before. */
  readonly replayed: boolean;
}

/** Creates an order, or finds the one that was stored before: the use case behind every API. */
export async function createOrder(
  deps: GatewayDeps,
  call: Call,
  input: OrderInput,
): Promise<Result<CreatedOrder, Failure>> {
  const { merchant, clientSecret } = call.client;
  const parsed = parseOrder(input);
  if (!parsed.ok) return failed({ kind: 'invalid_order', errors: parsed.failure });
  const fields = parsed.value;
  switch (checkChecksum(fields, clientSecret, merchant.checksumMode)) {
    case 'does_not_verify':
      return failed({ kind: 'checksum_mismatch', canonicalText: canonicalText(fields) });
    case 'not_versioned':
      return failed({
        kind: 'invalid_order',
        errors: [{ field: 'order_checksum', code: 'not_allowed', message: `must begin with ${checksumPrefix}` }],
      });
  }
  const id = deps.serviceOrderIds.take();
  const serviceOrderId = typeof id === 'number' ? id : await settledWithin(call.timeLeftMs(), id);
  if (typeof serviceOrderId !== 'number') return failed(storageFailure(serviceOrderId));
  const order = openOrder(fields, {
    merchantId: merchant.id,
    serviceOrderId,
    orderToken: createOrderToken(deps.randomBytes),
    createdAtMs: deps.now(),
  });
  const outcome = await deps.store.create(order, call.timeLeftMs());
  switch (outcome.kind) {
    case 'created':
      return success({ order, replayed: false });
    case 'exists': {
      const differing = orderDifference(outcome.order.fields, fields);
      if (differing.length === 0) return success({ order: outcome.order, replayed: true });
      return failed({ kind: 'order_id_conflict', fields: differing });
    }
    case 'overloaded':
      return failed(storageFailure(outcome.kind));
    default:
      return failed({ kind: outcome.kind, orderMayExist: true });
  }
}
