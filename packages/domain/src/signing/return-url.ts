import type { Order } from '../orders/order.ts';
import { equalsSecret, joinEscaped, signText } from '../signed-text.ts';

/** How a return URL is signed, so that the merchant can trust its order_status. */
export interface ReturnSigning {
  /** The merchant's signing secret, 32 bytes. */
  readonly secret: Uint8Array;
  /** The secret that `secret` replaced in the last 24 hours. */
  readonly previousSecret?: Uint8Array | undefined;
  /** Seconds since 1970-01-01 UTC. */
  readonly signedAtSeconds: number;
}

/**
 * Returns the address to which the customer returns: the merchant's return_url with order_id, service_order_id and
 * order_status set in its query. With signing, it also has signed_at and the signature over these four, and
 * previous_signature, made with the previous secret, if there is one. The rest of the URL stays as it was sent. The
 * token is not added, because anyone who reads the merchant's logs could open the payment page with it.
 */
export function returnUrlFor({ fields, serviceOrderId, orderStatus }: Order, signing?: ReturnSigning): string {
  const [, address = '', query = '', fragment = ''] = urlParts.exec(fields.return_url) ?? [];
  const orderParameters = {
    order_id: fields.order_id,
    service_order_id: String(serviceOrderId),
    order_status: orderStatus,
  };
  const newParameters = signing === undefined ? orderParameters : signed(orderParameters, signing);
  const sentParameters = query.length > 1 ? query.slice(1).split('&') : [];
  const keptParameters = sentParameters.filter((parameter) => !Object.hasOwn(newParameters, nameOf(parameter)));
  const addedParameters = Object.entries(newParameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return new URL(`${address}?${[...keptParameters, ...addedParameters].join('&')}${fragment}`).href;
}

/**
 * How long a merchant trusts a signature. This allows for the time that a customer stays on the payment page before
 * returning. The SDK has the same default.
 */
const toleranceSeconds = 3_600;

/** The signed parameters, in the order in which they are signed. */
const signedNames = ['order_id', 'service_order_id', 'order_status', 'signed_at'] as const;

/** The result when a merchant checks the signature of a return URL. */
export type SignatureCheck = 'valid' | 'missing' | 'too_old' | 'wrong';

/** Checks the query of a return as a merchant does, with the secrets that sign returns and the current time. */
export function checkReturn(query: URLSearchParams, signing: ReturnSigning): SignatureCheck {
  const { secret, previousSecret, signedAtSeconds: now } = signing;
  const signature = query.get('signature');
  if (signature === null) return 'missing';
  const isRepeated = [...signedNames, 'signature'].some((name) => query.getAll(name).length !== 1);
  const values = signedNames.map((name) => query.get(name) ?? '');
  const isSignedWith = (key: Uint8Array) => equalsSecret(signature, signText(joinEscaped(values), key));
  const isMatch = isSignedWith(secret) || (previousSecret !== undefined && isSignedWith(previousSecret));
  if (isRepeated || !isMatch) return 'wrong';
  return now - Number(query.get('signed_at')) <= toleranceSeconds ? 'valid' : 'too_old';
}

/** Returns the host of a URL as a browser shows it: with its port, and in Punycode if it is not ASCII. */
export function hostOf(url: string): string {
  return new URL(url).host;
}

function signed<Parameters extends Record<string, string>>(
  parameters: Parameters,
  { secret, previousSecret, signedAtSeconds }: ReturnSigning,
) {
  const all = { ...parameters, signed_at: String(signedAtSeconds) };
  const text = joinEscaped(Object.values(all));
  return {
    ...all,
    signature: signText(text, secret),
    ...(previousSecret && { previous_signature: signText(text, previousSecret) }),
  };
}

const urlParts = /^([^?#]*)(\?[^#]*)?(#.*)?$/s;

/** Returns a parameter's name, decoded as the merchant's server decodes it. */
function nameOf(parameter: string): string {
  const [name = ''] = new URLSearchParams(`?${parameter}`).keys();
  return name;
}
