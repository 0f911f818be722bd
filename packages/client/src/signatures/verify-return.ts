import { SignatureError } from '../errors.ts';
import type { OrderStatus } from '../types.ts';
import { joinEscaped } from './order-checksum.ts';
import { type Bytes, bytesOf, checkSignedAt, isSigned } from './signatures.ts';

/** The content of a signed return: the order, and its status when the gateway signed the address. */
export interface SignedReturn {
  readonly order_id: string;
  readonly service_order_id: number;
  readonly order_status: OrderStatus;
  /** When the gateway signed the address. */
  readonly signed_at: Date;
}

/**
 * Verifies the query with which a customer returns from the payment page. Throws a {@link SignatureError} if a
 * parameter is missing or repeated, the signature does not match, or the time of the signature differs from the current
 * time by more than the tolerance. A customer may open the same address again within the tolerance, so look up the
 * order before you ship.
 *
 * @param address The requested URL, its path with the query, or the query alone.
 * @param secrets Your signing secret, `whsec_…`, or several during a rotation. For 24 hours after another secret begins
 *   to sign, the previous one is accepted too.
 * @param options.toleranceSeconds 3,600 by default: the customer may stay on the page before returning.
 */
export async function verifyReturn(
  address: string | URL | URLSearchParams,
  secrets: string | readonly string[],
  { toleranceSeconds = 3_600 }: { readonly toleranceSeconds?: number } = {},
): Promise<SignedReturn> {
  const query = address instanceof URLSearchParams ? address : queryOf(String(address));
  const parameterOf = (name: string): string => {
    const [value, ...repeats] = query.getAll(name);
    if (!value || repeats.length > 0) throw new SignatureError(`The parameter ${name} is missing or repeated`);
    return value;
  };
  const orderId = parameterOf('order_id');
  const serviceOrderId = parameterOf('service_order_id');
  const status = parameterOf('order_status');
  const signedAt = parameterOf('signed_at');
  const names = query.has('previous_signature') ? ['signature', 'previous_signature'] : ['signature'];
  const signatures = names.map(parameterOf).map(signatureBytes);
  checkSignedAt(signedAt, toleranceSeconds);
  const data = bytesOf(joinEscaped([orderId, serviceOrderId, status, signedAt]));
  if (!(await isSigned(data, signatures, [secrets].flat()))) throw new SignatureError('The signature does not match');
  return {
    order_id: orderId,
    service_order_id: Number(serviceOrderId),
    order_status: status as OrderStatus,
    signed_at: new Date(Number(signedAt) * 1_000),
  };
}

/** Returns the bytes of a signature; none if its form is wrong. */
function signatureBytes(signature: string): Bytes {
  const [, hex] = /^v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  return Uint8Array.from(hex?.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

function queryOf(address: string): URLSearchParams {
  const [beforeFragment = ''] = address.split('#', 1);
  return new URLSearchParams(beforeFragment.slice(beforeFragment.indexOf('?') + 1));
}
