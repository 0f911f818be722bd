import { Code, ConnectError } from '@connectrpc/connect';
import type { Failure } from '@gateway/domain/failure';
import type { MerchantId } from '@gateway/domain/merchant';
import type { OrderInput } from '@gateway/domain/parse-order';
import type { Result } from '@gateway/domain/result';
import type { Authenticate, PresentedCredentials } from '../authenticate.ts';
import { type Caller, createOrder, type KeptOrder } from '../create-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs } from '../limits.ts';
import type { CallRecord, Door, Log } from '../log.ts';
import { limitedMerchant } from '../rate-limit.ts';
import { requestIdOf } from '../request-id.ts';
import { connectErrorOf, errorInfoOf } from './connect-error.ts';

/** One call of the service, whatever carries it: Connect's router or the lane. */
export interface Call {
  readonly requestId: string;
  readonly door: Door;
  /** On the clock of `performance.now()`. */
  readonly startedAt: number;
  caller: Caller | undefined;
  /** Whose call it is, also where it was refused for making too many. */
  merchantId: MerchantId | undefined;
  /** What the caller was told first, or `cancelled` as long as it was told nothing. */
  code: CallRecord['code'];
}

export function openCall(deps: GatewayDeps, door: Door, requestIdSent: string | null | undefined): Call {
  const requestId = requestIdOf(requestIdSent, deps.randomBytes);
  return { requestId, door, startedAt: performance.now(), caller: undefined, merchantId: undefined, code: 'cancelled' };
}

/** Checks the credentials of a call within the time that is left of it, before its message is read. Throws the refusal. */
export async function admitCall(
  deps: GatewayDeps,
  call: Call,
  credentials: PresentedCredentials,
  timeoutMs: number,
): Promise<void> {
  let merchant: Awaited<ReturnType<Authenticate>>;
  try {
    merchant = await deps.authenticate(credentials, timeoutMs);
  } catch (error) {
    throw faulted(deps, call, error);
  }
  if (!merchant.ok) throw refused(call, merchant.failure);
  call.caller = { merchant: merchant.value, clientSecret: credentials.clientSecret ?? '' };
  call.merchantId = merchant.value.id;
}

/** Creates the order of an admitted call within the time that is left of it. Throws the refusal. */
export async function answerCreateOrder(
  deps: GatewayDeps,
  call: Call,
  input: Result<OrderInput, Failure>,
  timeoutMs: number,
): Promise<KeptOrder> {
  const { caller } = call;
  if (caller === undefined) throw new Error('a call came past its admission');
  if (timeoutMs <= 0) throw refused(call, { kind: 'deadline_exceeded' });
  if (!input.ok) throw refused(call, input.failure);
  let created: Awaited<ReturnType<typeof createOrder>>;
  try {
    created = await createOrder(deps, caller, input.value, timeoutMs);
  } catch (error) {
    throw faulted(deps, call, error);
  }
  if (!created.ok) throw refused(call, created.failure);
  tell(call, created.value.replayed ? 'replayed' : 'created');
  return created.value;
}

/** The time that is left of a call: the caller's, and at most the gateway's own. */
export function timeLeftMs(call: Call, callersTimeLeftMs: number | undefined): number {
  const ownTimeLeftMs = callTimeoutMs - (performance.now() - call.startedAt);
  return callersTimeLeftMs === undefined ? ownTimeLeftMs : Math.min(callersTimeLeftMs, ownTimeLeftMs);
}

/** A refusal of the gateway, noted as what the call came to. */
export function refused(call: Call, failure: Failure): ConnectError {
  tell(call, failure.kind);
  call.merchantId ??= limitedMerchant(failure);
  return connectErrorOf(failure, call.requestId);
}

/**
 * Completes whatever ended a call with what the gateway adds to it: the machine code where Connect's own refusal has one of
 * ours, and the outcome for the log. A refusal of the gateway's own passes unchanged, and so does a caller that went away.
 */
export function completeRefusal(call: Call, error: unknown): void {
  if (call.code !== 'cancelled' || !(error instanceof ConnectError)) return;
  switch (error.code) {
    case Code.ResourceExhausted:
      tell(call, 'body_too_large');
      error.details.push(errorInfoOf('body_too_large', call.requestId));
      return;
    case Code.DeadlineExceeded:
      tell(call, 'deadline_exceeded');
      return;
    case Code.Canceled:
    case Code.Aborted:
      return;
    default:
      tell(call, 'unreadable');
  }
}

/** Writes the line of a call that has ended. */
export function logCall(log: Log, call: Call): void {
  log.call({
    request_id: call.requestId,
    door: call.door,
    merchant_id: call.merchantId,
    code: call.code,
    duration_ms: performance.now() - call.startedAt,
  });
}

/** A fault of ours: logged, and answered without its cause. */
export function faulted(deps: GatewayDeps, call: Call, error: unknown): ConnectError {
  deps.log.fault('a call failed', error, { request_id: call.requestId });
  return refused(call, { kind: 'internal' });
}

/** Notes what a call came to; the first thing that its caller was told counts. */
export function tell(call: Call, code: CallRecord['code']): void {
  if (call.code === 'cancelled') call.code = code;
}
