import type { Failure } from '@order-gateway/domain/failure';
import { type AllowedAddresses, isLoopbackUrl, isPublicAddress, literalAddressOf } from '../../network/ip-address.ts';

/** The reason why nothing is sent to a URL, as the end of a sentence; `undefined` if the URL is allowed. */
export function urlProblem(url: URL, allowed: AllowedAddresses): string | undefined {
  if (allowed === 'any') return undefined;
  const address = literalAddressOf(url);
  const isLoopback = isLoopbackUrl(url);
  if (allowed === 'loopback' && isLoopback) return undefined;
  if (url.protocol !== 'https:') return 'must begin with https://';
  const isPublic = address === undefined ? !isLoopback : isPublicAddress(address);
  return isPublic ? undefined : 'must be a public address';
}

/** The failure of a merchant's request with a URL to which nothing is sent. */
export function urlFailure(url: string, allowed: AllowedAddresses): Failure | undefined {
  const problem = urlProblem(new URL(url), allowed);
  return problem === undefined ? undefined : { kind: 'webhook_url_not_allowed', reason: `The URL ${problem}.` };
}
