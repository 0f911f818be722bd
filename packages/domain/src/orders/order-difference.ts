import { isPersonal, matchesErased } from './erasure.ts';
import { isSameMetadata } from './metadata.ts';
import type { Order } from './order.ts';
import { isAdditional, orderFieldNames, type RequestFieldName } from './order-fields.ts';
import type { ParsedOrder } from './parse-order.ts';

/**
 * Returns the fields in which a received order differs from the stored one, in the order of the API contract; empty for
 * a replay. The checksum is not compared, because a new client secret changes it although the order is the same.
 * Optional additions to the API contract are compared only if they were sent. If the personal data was erased, either
 * all personal fields differ or none does. The erasure key is needed to tell; without it, all of them count as
 * different. Erased metadata is not compared.
 */
export function orderDifference(
  stored: Pick<Order, 'merchantId' | 'erasedDigest' | 'fields' | 'expiresAtMs' | 'metadata'>,
  { fields, expiresAtMs, metadata }: ParsedOrder,
  erasureKeys: readonly Uint8Array[] = [],
): RequestFieldName[] {
  const isErased = stored.erasedDigest !== null;
  const isSame = isErased && matchesErased(stored, fields, erasureKeys);
  const differing: RequestFieldName[] = orderFieldNames.filter((name) => {
    if (name === 'order_checksum' || (isAdditional(name) && fields[name] === '')) return false;
    return isErased && isPersonal(name) ? !isSame : stored.fields[name] !== fields[name];
  });
  if (expiresAtMs !== undefined && expiresAtMs !== stored.expiresAtMs) differing.push('order_expires_at');
  if (metadata !== undefined && !isErased && !isSameMetadata(metadata, stored.metadata)) differing.push('metadata');
  return differing;
}
