import type { IncomingHttpHeaders } from 'node:http';
import type { Failure } from '@gateway/domain/failure';
import { failed, type Result, success } from '@gateway/domain/result';
import { type Caller, createOrder, type KeptOrder } from '../create-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs, messageBytesMax } from '../limits.ts';
import { credentialsOf } from './credentials.ts';
import { parseOrderJson } from './strict-json.ts';

/** Who calls, by the headers alone: what they say of the body is checked first, then the credentials. */
export async function admitOrder(deps: GatewayDeps, headers: IncomingHttpHeaders): Promise<Result<Caller, Failure>> {
  if (Number(headers['content-length']) > messageBytesMax) return failed({ kind: 'body_too_large' });
  if (!isPlainJson(headers)) return failed({ kind: 'unsupported_media_type' });
  const credentials = credentialsOf(headers);
  const merchant = await deps.authenticate(credentials, callTimeoutMs);
  if (!merchant.ok) return merchant;
  return success({ merchant: merchant.value, clientSecret: credentials.clientSecret ?? '' });
}

/** `application/json`, in UTF-8 where a charset is named, and not compressed. */
function isPlainJson(headers: IncomingHttpHeaders): boolean {
  const encoding = headers['content-encoding'] ?? 'identity';
  return (
    encoding.toLowerCase() === 'identity' &&
    /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i.test(headers['content-type'] ?? '')
  );
}

/** Keeps the order of a caller's body: JSON, fields, checksum, store. */
export async function keepOrder(
  deps: GatewayDeps,
  caller: Caller,
  body: Uint8Array,
  timeLeftMs: number,
): Promise<Result<KeptOrder, Failure>> {
  if (timeLeftMs <= 0) return failed({ kind: 'deadline_exceeded' });
  const input = parseOrderJson(body);
  if (!input.ok) return failed({ kind: 'malformed_json', reason: input.failure });
  return createOrder(deps, caller, input.value, timeLeftMs);
}
