import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@gateway/domain/failure';
import type { Merchant } from '@gateway/domain/merchant';
import { isSameMetadata, type Metadata, parseMetadata } from '@gateway/domain/metadata';
import { newOrder, type Order, type OrderFields } from '@gateway/domain/order';
import { canonicalText, checkChecksum, checksumPrefix } from '@gateway/domain/order-checksum';
import { orderDifference } from '@gateway/domain/order-difference';
import { expiryRangeError, parseExpiry } from '@gateway/domain/order-expiry';
import type { RequestFieldName } from '@gateway/domain/order-fields';
import { createOrderToken } from '@gateway/domain/order-token';
import { type OrderInput, parseOrder, unknownMembers } from '@gateway/domain/parse-order';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Caller, Operation, OperationDeps } from '../orders/operation.ts';
import { orderResponse } from '../orders/order-response.ts';
import { storageFailure } from '../orders/storage-failure.ts';

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
  const parsed = parseOrder(input);
  const expiry = parseExpiry(input.order_expires_at);
  const metadata = parseMetadata(input.metadata);
  const unknown = caller.isStrict ? unknownMembers(input) : [];
  if (!parsed.ok || !expiry.ok || !metadata.ok || unknown.length > 0) {
    const errors = [
      ...(parsed.ok ? [] : parsed.failure),
      ...(expiry.ok ? [] : [expiry.failure]),
      ...(metadata.ok ? [] : metadata.failure),
      ...unknown,
    ];
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
  const sent = { fields, expiresAtMs: expiry.value, metadata: metadata.value };
  const rangeError = sent.expiresAtMs === undefined ? undefined : expiryRangeError(sent.expiresAtMs, nowMs);
  if (rangeError !== undefined) {
    // An order that is sent again may be near its end by now, or past it.
    const found = await deps.store.findByOrderId(merchant.id, fields.order_id, caller.timeLeftMs());
    if (found.kind === 'found') return replayOf(deps, found.order, sent);
    return failed(
      found.kind === 'unknown' ? { kind: 'invalid_order', errors: [rangeError] } : storageFailure(found.kind),
    );
  }
  const order = newOrder(fields, {
    merchantId: merchant.id,
    orderToken: createOrderToken(deps.randomBytes),
    createdAtMs: nowMs,
    expiresAtMs: sent.expiresAtMs ?? defaultEnd(merchant, nowMs),
    metadata: sent.metadata ?? null,
  });
  caller.concerns(order);
  const outcome = await deps.store.create(order, caller.timeLeftMs());
  if ('order' in outcome) caller.concerns(outcome.order);
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

/**
 * The stored order if it is the one that was sent. Its expiry and metadata are compared only if they were sent, and metadata that was
 * erased is not compared.
 */
function replayOf(
  { erasureKeys }: CreateOrderDeps,
  order: Order,
  sent: {
    readonly fields: OrderFields;
    readonly expiresAtMs: number | undefined;
    readonly metadata: Metadata | undefined;
  },
): Result<CreatedOrder, Failure> {
  const differing: RequestFieldName[] = orderDifference(order, sent.fields, erasureKeys);
  if (sent.expiresAtMs !== undefined && sent.expiresAtMs !== order.expiresAtMs) differing.push('order_expires_at');
  if (sent.metadata !== undefined && order.erasedDigest === null && !isSameMetadata(sent.metadata, order.metadata)) {
    differing.push('metadata');
  }
  return differing.length === 0
    ? success({ order, replayed: true })
    : failed({ kind: 'order_id_conflict', fields: differing });
}

function defaultEnd({ defaultLifetimeSeconds }: Merchant, nowMs: number): number | null {
  return defaultLifetimeSeconds === null ? null : nowMs + defaultLifetimeSeconds * 1_000;
}
