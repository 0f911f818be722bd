import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Merchant } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import { createOrderToken } from '@order-gateway/domain/links/order-token';
import { newOrder, type Order } from '@order-gateway/domain/orders/order';
import { orderDifference } from '@order-gateway/domain/orders/order-difference';
import { expiryOfNewOrder, expiryRangeError } from '@order-gateway/domain/orders/order-expiry';
import { type OrderInput, type ParsedOrder, parseOrder } from '@order-gateway/domain/orders/parse-order';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { checksumFailure } from '@order-gateway/domain/signing/order-checksum';
import type { Caller, Operation, OperationDeps } from '../operation.ts';
import { storageFailure } from '../retry-after.ts';
import { orderResponse } from './order-response.ts';

type CreateOrderDeps = Pick<OperationDeps, 'store' | 'randomBytes' | 'now' | 'erasureKeys'>;

export interface CreatedOrder {
  readonly order: Order;
  /** Whether the same order was stored before. */
  readonly replayed: boolean;
}

export function createOrderOperation(deps: CreateOrderDeps & Pick<OperationDeps, 'baseUrl'>): Operation {
  return {
    method: OrderService.method.createOrder,
    async handle(members, caller: Caller<Merchant>) {
      const created = await createOrder(deps, caller, members);
      if (!created.ok) return created;
      const { order, replayed } = created.value;
      const preferenceApplied = caller.isStrict ? 'handling=strict' : undefined;
      const outcome = replayed ? 'replayed' : 'created';
      return success({ body: orderResponse(order, deps.baseUrl()), outcome, preferenceApplied });
    },
  };
}

/** Creates an order, or finds the same order if it was stored before. */
export async function createOrder(
  deps: CreateOrderDeps,
  caller: Caller<Merchant>,
  input: OrderInput,
): Promise<Result<CreatedOrder, Failure>> {
  const { account: merchant, clientSecret } = caller;
  const nowMs = deps.now();
  const parsed = parseOrder(input, caller);
  if (!parsed.ok) return failed({ kind: 'invalid_order', errors: parsed.failure });
  const { fields, expiresAtMs, metadata = null } = parsed.value;
  const wrongChecksum = checksumFailure(fields, clientSecret, merchant.checksumMode);
  if (wrongChecksum !== undefined) return failed(wrongChecksum);
  const rangeError = expiresAtMs === undefined ? undefined : expiryRangeError(expiresAtMs, nowMs);
  if (rangeError !== undefined) {
    // An order that is sent again may be near its expiry, or past it.
    const found = await deps.store.findByOrderId(merchant.id, fields.order_id, caller.timeLeftMs());
    if (found.kind === 'found') return replayOf(deps, found.order, parsed.value);
    return failed(
      found.kind === 'unknown' ? { kind: 'invalid_order', errors: [rangeError] } : storageFailure(found.kind),
    );
  }
  const order = newOrder(fields, {
    merchantId: merchant.id,
    orderToken: createOrderToken(merchant.id, deps.randomBytes),
    createdAtMs: nowMs,
    expiresAtMs: expiryOfNewOrder(expiresAtMs, merchant, nowMs),
    metadata,
  });
  caller.concerns(order);
  const outcome = await deps.store.create(order, caller.timeLeftMs());
  if ('order' in outcome) caller.concerns(outcome.order);
  switch (outcome.kind) {
    case 'created':
      return success({ order: outcome.order, replayed: false });
    case 'exists':
      return replayOf(deps, outcome.order, parsed.value);
    case 'overloaded':
      return failed(storageFailure(outcome.kind));
    default:
      return failed({ kind: outcome.kind, orderMayExist: true });
  }
}

/** Returns the stored order if it is the one that was sent. */
function replayOf({ erasureKeys }: CreateOrderDeps, order: Order, sent: ParsedOrder): Result<CreatedOrder, Failure> {
  const fields = orderDifference(order, sent, erasureKeys);
  return fields.length === 0 ? success({ order, replayed: true }) : failed({ kind: 'order_id_conflict', fields });
}
