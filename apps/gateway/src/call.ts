import type { IncomingHttpHeaders } from 'node:http';
import { randomBase62 } from '@gateway/domain/base62';
import { type Failure, type FailureCode, failures } from '@gateway/domain/failure';
import type { Account, Merchant } from '@gateway/domain/merchant';
import { failed, type Result } from '@gateway/domain/result';
import type { Place } from './admission.ts';
import type { CallBody } from './call-body.ts';
import { isOurs } from './call-log.ts';
import type { Peer } from './connection-limit.ts';
import type { GatewayDeps } from './gateway-deps.ts';
import { callTimeoutMs, fairTimeoutMs } from './limits.ts';
import { retryAfter, settledWithin, storageFailure } from './storage-outcome.ts';
import type { CallSpan } from './telemetry/tracing.ts';

export type Protocol = 'json' | 'connect' | 'grpc-web' | 'grpc';

/**
 * What became of a call: a success, the machine code of its error, `unreadable` where Connect itself rejected the message,
 * `cancelled` where the client left before the response, or `client_timeout`, a `deadline_exceeded` that the client caused.
 */
export type Outcome = FailureCode | Success | 'unreadable' | 'cancelled' | 'client_timeout';

export type Success = 'created' | 'replayed' | 'ok';

/** An authenticated merchant. The secret stays with it, as `v1=` checksums are keyed with it. */
export interface Client {
  readonly merchant: Merchant;
  readonly clientSecret: string;
}

const clientRequestId = /^[A-Za-z0-9._-]{1,128}$/;

/** 16 base62 characters are 95 bits: no two requests share one. */
const requestIdLength = 16;

/** Outcomes of statuses that the platform or Connect answered by itself. */
const outcomeOfStatus = new Map<number, Outcome>(
  (['not_found', 'method_not_allowed', 'unsupported_media_type'] as const).map((code) => [
    failures[code].httpStatus,
    code,
  ]),
);

/** One call, whatever protocol carries it: its id, deadline, client and outcome. Logged once, when it ends. */
export class Call {
  readonly requestId: string;
  protocol: Protocol;
  /** What the client asked for, such as `CreateOrder`: a name of ours, never a text of the client. */
  operation = 'unknown';
  /** The client of the call, and its connection. */
  readonly peer: Peer;
  readonly #deps: GatewayDeps;
  readonly #clientId: string | undefined;
  readonly #clientSecret: string | undefined;
  readonly #startedAt = performance.now();
  #timeoutMs = callTimeoutMs;
  /** Whether a deadline that passes is the client's fault: it asks for too little time, or sends its message too slowly. */
  #isClientLate = false;
  #account: Account | undefined;
  #authenticated: Promise<Result<Account, Failure>> | undefined;
  #place: Place | undefined;
  #hasEnded = false;
  #outcome: Outcome | undefined;
  /** The names of the fields that were at fault. */
  #fields: readonly string[] | undefined;
  readonly #span: CallSpan | undefined;

  constructor(deps: GatewayDeps, protocol: Protocol, headers: IncomingHttpHeaders, peer: Peer) {
    const sent = headers['x-request-id']?.toString();
    this.requestId = sent && clientRequestId.test(sent) ? sent : randomBase62(requestIdLength, deps.randomBytes);
    this.protocol = protocol;
    this.peer = peer;
    this.#deps = deps;
    this.#clientId = headers['x-client-id']?.toString();
    this.#clientSecret = headers['x-client-secret']?.toString();
    this.#span = deps.tracing?.startCall(headers);
  }

  /** The client of a call that was authenticated as a merchant's. */
  get client(): Client {
    if (this.#account?.kind !== 'merchant') throw new Error('the call was not authenticated as a merchant');
    return { merchant: this.#account, clientSecret: this.#clientSecret ?? '' };
  }

  /** Whether the call has no valid credentials, or was not asked for them. */
  get isAnonymous(): boolean {
    return this.#account === undefined;
  }

  /** A client may ask for less time than the gateway gives, and gets no more. */
  limitTimeout(timeoutMs: number | undefined): void {
    if (timeoutMs === undefined) return;
    this.#timeoutMs = Math.min(timeoutMs, callTimeoutMs);
    this.#isClientLate = timeoutMs < fairTimeoutMs;
  }

  /**
   * The time that is left in milliseconds; may be negative. Whatever a call waits for (its body, the client directory, an id,
   * the store) gets this as its limit and answers `deadline_exceeded` by itself: there is no timer over all of them.
   */
  timeLeftMs(): number {
    return this.#timeoutMs - (performance.now() - this.#startedAt);
  }

  /**
   * Checks the credentials, the kind of client, its rate limit, and whether there is room for the call. Once, however often it is
   * called: before the body is read where the protocol allows it.
   */
  authenticate(kind: Account['kind']): Promise<Result<Account, Failure>> {
    this.#authenticated ??= this.#admit(kind);
    return this.#authenticated;
  }

  /** The deadline comes second: whoever has no credentials gets `unauthenticated`, however little time was asked for. */
  #admit(kind: Account['kind']): Promise<Result<Account, Failure>> {
    return this.#try(async () => {
      const credentials = { clientId: this.#clientId, clientSecret: this.#clientSecret };
      const account = await this.#deps.authenticate(credentials, this.timeLeftMs());
      if (!account.ok) {
        return account.failure.kind === 'unauthenticated'
          ? failed(await this.#deps.anonymousCalls.reject(this.peer))
          : account;
      }
      this.#account = account.value;
      this.peer.known();
      if (account.value.kind !== kind) return failed({ kind: 'permission_denied' });
      const waitMs = this.#deps.rateLimit(account.value);
      if (waitMs !== undefined) return failed({ kind: 'rate_limited', retryAfterMs: retryAfter(waitMs) });
      // A client that left meanwhile gets no response.
      this.#place = this.#hasEnded ? undefined : this.#deps.admission.enter(account.value.id);
      if (this.#place === undefined) return failed(storageFailure('overloaded'));
      return account;
    });
  }

  /** Runs a step of the call, once it is the call's turn, and records its failure. A bug is logged and becomes `internal`. */
  run<Value>(step: () => Promise<Result<Value, Failure>>): Promise<Result<Value, Failure>> {
    return this.#try(async () => {
      const turn = this.#place?.begin();
      const wait = await (turn && settledWithin(this.timeLeftMs(), turn));
      // Not by the time alone: Node.js's timers fire up to a millisecond early.
      if (wait === 'deadline_exceeded' || this.timeLeftMs() <= 0) return failed({ kind: 'deadline_exceeded' });
      return step();
    });
  }

  async #try<Value>(step: () => Promise<Result<Value, Failure>>): Promise<Result<Value, Failure>> {
    try {
      const result = await (this.#span === undefined ? step() : this.#span.run(step));
      return result.ok ? result : failed(this.fail(result.failure));
    } catch (error) {
      return failed(this.failInternally(error));
    }
  }

  /** The message is complete, or too late: by the timer of its body, which may fire a little early, or by the time. */
  messageCame(body: CallBody): void {
    this.#isClientLate ||= body === 'deadline_exceeded' || this.timeLeftMs() <= 0;
  }

  /** Records a success. The first outcome counts. */
  succeed(outcome: Success): void {
    this.#outcome ??= outcome;
  }

  /** Records a failure and returns it. The first outcome counts. */
  fail(failure: Failure): Failure {
    this.#outcome ??= this.#isClientLate && failure.kind === 'deadline_exceeded' ? 'client_timeout' : failure.kind;
    this.#fields ??= fieldsOf(failure);
    return failure;
  }

  /** Logs a bug, without any value of the request, and returns what the client gets to know. */
  failInternally(error: unknown): Failure {
    this.#deps.logger.error({ err: error, request_id: this.requestId }, 'call failed');
    return this.fail({ kind: 'internal' });
  }

  /** Makes room for another call, logs and counts this one: at the end of the response, or when the client left before it. */
  end({ isAnswered, status }: { readonly isAnswered: boolean; readonly status: number }): void {
    this.#hasEnded = true;
    this.#place?.leave();
    const code = this.#outcome ?? (isAnswered ? (outcomeOfStatus.get(status) ?? 'unreadable') : 'cancelled');
    const durationMs = performance.now() - this.#startedAt;
    const { protocol, operation } = this;
    const labels = { protocol, operation, code };
    this.#deps.recordCall(labels, durationMs);
    this.#span?.end(labels, isOurs(code));
    this.#deps.callLog.write({
      request_id: this.requestId,
      trace_id: this.#span?.traceId,
      protocol,
      operation,
      remote_address: this.peer.address,
      [`${this.#account?.kind ?? 'merchant'}_id`]: this.#account?.id,
      code,
      ...(protocol.startsWith('grpc') ? { grpc_status: grpcStatusOf(code) } : { http_status: status }),
      fields: this.#fields,
      duration_ms: Math.round(durationMs * 1_000) / 1_000,
    });
  }
}

/** The canonical name of the status that a gRPC client gets; absent where Connect or the platform chose it. */
function grpcStatusOf(code: Outcome): string | null | undefined {
  if (code === 'client_timeout') return failures.deadline_exceeded.grpcStatus;
  if (code in failures) return failures[code as FailureCode].grpcStatus;
  return code === 'cancelled' ? 'CANCELLED' : code === 'unreadable' ? undefined : 'OK';
}

/** The names of the fields that a failure is about: names of the interface, without values. */
function fieldsOf(failure: Failure): readonly string[] | undefined {
  if (failure.kind === 'order_id_conflict') return failure.fields;
  return 'errors' in failure ? failure.errors.map(({ field }) => field) : undefined;
}
