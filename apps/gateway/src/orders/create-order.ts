import type { Failure } from '@gateway/domain/failure';
import type { Merchant } from '@gateway/domain/merchant';
import { type Order, type OrderFields, openOrder } from '@gateway/domain/order';
import { canonicalText, checkChecksum, checksumPrefix } from '@gateway/domain/order-checksum';
import { orderDifference } from '@gateway/domain/order-difference';
import { expiryRangeError, parseExpiry } from '@gateway/domain/order-expiry';
import type { RequestFieldName } from '@gateway/domain/order-fields';
import { createOrderToken } from '@gateway/domain/order-token';
import { type OrderInput, parseOrder } from '@gateway/domain/parse-order';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { storageFailure } from '../storage-outcome.ts';

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
  const nowMs = deps.now();
  const parsed = parseOrder(input);
  const expiry = parseExpiry(input.order_expires_at);
  if (!parsed.ok || !expiry.ok) {
    const errors = [...(parsed.ok ? [] : parsed.failure), ...(expiry.ok ? [] : [expiry.failure])];
    return failed({ kind: 'invalid_order', errors });
  }
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
  const sent = { fields, expiresAtMs: expiry.value };
  const rangeError = sent.expiresAtMs === undefined ? undefined : expiryRangeError(sent.expiresAtMs, nowMs);
  if (rangeError !== undefined) {
    // An order that is sent again may be near its end by now, or past it.
    const found = await deps.store.findByOrderId(merchant.id, fields.order_id, call.timeLeftMs());
    if (found.kind === 'found') return replayOf(deps, found.order, sent);
    return failed(
      found.kind === 'unknown' ? { kind: 'invalid_order', errors: [rangeError] } : storageFailure(found.kind),
    );
  }
  const order = openOrder(fields, {
    merchantId: merchant.id,
    orderToken: createOrderToken(deps.randomBytes),
    createdAtMs: nowMs,
    expiresAtMs: sent.expiresAtMs ?? defaultEnd(merchant, nowMs),
  });
  const outcome = await deps.store.create(order, call.timeLeftMs());
  switch (outcome.kind) {
    case 'created':
      return success({ order: outcome.order, replayed: false });
    case 'exists':
      return replayOf(deps, outcome.order, sent);
    case 'overloaded':
      return failed(storageFailure(outcome.kind));
    default:
      return failed({ kind: outcome.kind, orderMayExist: true });
  }
}

/** The stored order if it is the one that was sent, which has an end only if the merchant sent one. */
function replayOf(
  { erasureKeys }: GatewayDeps,
  order: Order,
  sent: { readonly fields: OrderFields; readonly expiresAtMs: number | undefined },
): Result<CreatedOrder, Failure> {
  const differing: RequestFieldName[] = orderDifference(order, sent.fields, erasureKeys);
  if (sent.expiresAtMs !== undefined && sent.expiresAtMs !== order.expiresAtMs) differing.push('order_expires_at');
  return differing.length === 0
    ? success({ order, replayed: true })
    : failed({ kind: 'order_id_conflict', fields: differing });
}

function defaultEnd({ defaultLifetimeSeconds }: Merchant, nowMs: number): number | null {
  return defaultLifetimeSeconds === null ? null : nowMs + defaultLifetimeSeconds * 1_000;
}
