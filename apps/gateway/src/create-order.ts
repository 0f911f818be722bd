import type { RandomBytes } from '@gateway/domain/base62';
import type { Failure } from '@gateway/domain/failure';
import type { Merchant } from '@gateway/domain/merchant';
import { type Order, openOrder } from '@gateway/domain/order';
import { canonicalText, checkChecksum, checksumPrefix } from '@gateway/domain/order-checksum';
import { orderDifference } from '@gateway/domain/order-difference';
import type { OrderStore } from '@gateway/domain/order-store';
import { createOrderToken } from '@gateway/domain/order-token';
import { type OrderInput, parseOrder } from '@gateway/domain/parse-order';
import { failed, type Result, success } from '@gateway/domain/result';
import type { ServiceOrderIds } from '@gateway/domain/service-order-id';
import { settledWithin } from './deadline.ts';
import { storageFailure } from './storage-failure.ts';

export interface CreateOrderDeps {
  readonly store: OrderStore;
  readonly serviceOrderIds: ServiceOrderIds;
  readonly randomBytes: RandomBytes;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number;
}

/** Who creates an order: the merchant, and the secret that the request was made with, as the checksum is keyed with it. */
export interface Caller {
  readonly merchant: Merchant;
  readonly clientSecret: string;
}

export interface KeptOrder {
  readonly order: Order;
  /** Whether the order was kept before: the same order was sent again. */
  readonly replayed: boolean;
}

/** Creates an order, or finds the one that was sent before: the one use case behind every door. */
export async function createOrder(
  deps: CreateOrderDeps,
  caller: Caller,
  input: OrderInput,
  timeoutMs: number,
): Promise<Result<KeptOrder, Failure>> {
  const startedAt = performance.now();
  const timeLeftMs = () => timeoutMs - (performance.now() - startedAt);
  const parsed = parseOrder(input);
  if (!parsed.ok) return failed({ kind: 'invalid_order', errors: parsed.failure });
  const fields = parsed.value;
  switch (checkChecksum(fields, caller.clientSecret, caller.merchant.checksumMode)) {
    case 'does_not_verify':
      return failed({ kind: 'checksum_mismatch', canonicalText: canonicalText(fields) });
    case 'not_versioned':
      return failed({
        kind: 'invalid_order',
        errors: [{ field: 'order_checksum', code: 'not_allowed', message: `must begin with ${checksumPrefix}` }],
      });
  }
  const taken = deps.serviceOrderIds.take();
  const serviceOrderId = typeof taken === 'number' ? taken : await settledWithin(timeLeftMs(), taken);
  if (typeof serviceOrderId !== 'number') return failed(storageFailure(serviceOrderId));
  const order = openOrder(fields, {
    merchantId: caller.merchant.id,
    serviceOrderId,
    orderToken: createOrderToken(deps.randomBytes),
    createdAtMs: deps.now(),
  });
  const outcome = await deps.store.create(order, timeLeftMs());
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
