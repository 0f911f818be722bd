import type { IncomingHttpHeaders } from 'node:http';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { errorsOf } from '@order-gateway/contract/operations';
import {
  type Account,
  type PresentedCredentials,
  type RandomBytes,
  randomBase62,
} from '@order-gateway/domain/accounts';
import type { Failure, FailureCode } from '@order-gateway/domain/failure';
import type { ManagementCaller } from '@order-gateway/domain/management';
import { mayBeNull } from '@order-gateway/domain/orders';
import type { FieldError } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Logger } from '@order-gateway/runtime/logger';
import { eventWatchLimits, fairTimeoutMs } from '../limits.ts';
import type { CallSpan, Tracing } from '../runtime/telemetry/tracing.ts';
import type { Permit } from './admission.ts';
import type { CallBody } from './body/call-body.ts';
import { type CallLog, isServerError, type RecordCall } from './call-record.ts';
import type { Deadline, Members, NotedOrder, Operation, Reply, Success } from './operation.ts';
import type { Peer } from './peers/connection-limit.ts';
import { readPreferences } from './preferences.ts';

export interface CallDeps {
  readonly randomBytes: RandomBytes;
  readonly logger: Logger;
  readonly recordCall: RecordCall;
  readonly callLog: CallLog;
  /** The time for one call, from its headers to its response. */
  readonly callTimeoutMs: number;
  /** Absent: no traces. */
  readonly tracing?: Tracing | undefined;
}

export type Protocol = 'json' | 'connect' | 'grpc-web' | 'grpc';

/**
 * The outcome of a call: a success, the error code, `unreadable` if Connect itself rejected the message, `cancelled` if
 * the client disconnected before the response, or `client_timeout`, a `deadline_exceeded` that the client caused.
 */
export type Outcome = FailureCode | Success | 'unreadable' | 'cancelled' | 'client_timeout';

const clientRequestId = /^[A-Za-z0-9._-]{1,128}$/;

/** 16 base62 characters are 95 bits, so no two requests get the same id. */
const requestIdLength = 16;

/** The outcomes of calls whose status Fastify or Connect chose, by that status. */
const outcomeOfStatus = new Map<number, Outcome>(
  (['not_found', 'method_not_allowed', 'unsupported_media_type'] as const).map((code) => [
    errorCatalogue[code].httpStatus,
    code,
  ]),
);

/** One call in any protocol: its id, deadline, account and outcome. It is logged once, when it ends. */
export class Call implements Deadline {
  readonly requestId: string;
  protocol: Protocol;
  /** The operation, such as `CreateOrder`: a name that the gateway defines, never a client's text. */
  operation = 'unknown';
  /** The method and route of the HTTP request, or the path of the RPC; absent: unknown. Never a client's text. */
  httpMethod: string | undefined;
  route: string | undefined;
  /** Whether the message of the call is the body of the request, in JSON. */
  hasJsonBody = false;
  /** The client of the call, and its connection. */
  readonly peer: Peer;
  /** The credentials that the client sent, before any verification. */
  readonly credentials: PresentedCredentials;
  readonly #deps: CallDeps;
  readonly #preferences: ReadonlyMap<string, string> | undefined;
  readonly #startedAt = performance.now();
  #timeoutMs: number;
  /**
   * Whether the client itself caused the deadline to pass, because it set a very short timeout or sent its message too
   * slowly.
   */
  #isClientLate = false;
  #account: Account | undefined;
  #authenticateAgain: (() => Promise<Result<unknown, Failure>>) | undefined;
  #permit: Permit | undefined;
  #hasEnded = false;
  #pause: AbortController | undefined;
  /** How long the call waited at its caller's request. Its deadline and duration do not include this time. */
  #pausedMs = 0;
  #streamsSince: number | undefined;
  #outcome: Outcome | undefined;
  #order: NotedOrder | undefined;
  /** The names of the invalid fields. */
  #fields: readonly string[] | undefined;
  readonly #span: CallSpan | undefined;

  constructor(deps: CallDeps, protocol: Protocol, headers: IncomingHttpHeaders, peer: Peer) {
    const sentId = headers['x-request-id']?.toString();
    this.requestId = sentId && clientRequestId.test(sentId) ? sentId : randomBase62(requestIdLength, deps.randomBytes);
    this.protocol = protocol;
    this.peer = peer;
    this.#deps = deps;
    this.#timeoutMs = deps.callTimeoutMs;
    this.#preferences = headers.prefer === undefined ? undefined : readPreferences(headers.prefer.toString());
    this.credentials = {
      clientId: headers['x-client-id']?.toString(),
      clientSecret: headers['x-client-secret']?.toString(),
    };
    this.#span = deps.tracing?.startCall(headers);
  }

  /** Whether the response has been sent, or the client has disconnected. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Applies the time limit that the client sets, if any. It may shorten the gateway's limit, but not extend it. */
  limitTimeout(timeoutMs: number | undefined): void {
    if (timeoutMs === undefined) return;
    this.#timeoutMs = Math.min(timeoutMs, this.#deps.callTimeoutMs);
    this.#isClientLate = timeoutMs < fairTimeoutMs;
  }

  /** Returns the time until the deadline. Every wait uses it as its limit, and the call as a whole has no timer. */
  timeLeftMs(): number {
    return this.#timeoutMs + this.#pausedMs - (performance.now() - this.#startedAt);
  }

  concerns(order: NotedOrder): void {
    this.#order = order;
  }

  /** Records that the credentials are valid. `authenticateAgain` checks whether they still are after a pause. */
  authenticated(account: Account, authenticateAgain?: () => Promise<Result<unknown, Failure>>): void {
    this.#account = account;
    this.#authenticateAgain = authenticateAgain;
    this.peer.markAuthenticated();
  }

  /** Keeps the permit, which is released when the call ends, pauses or begins a stream. */
  hold(permit: Permit): void {
    this.#permit = permit;
  }

  /** Runs a step of the call in its span. A bug is logged and becomes `internal`. */
  async run<Value>(step: () => Promise<Result<Value, Failure>>): Promise<Result<Value, Failure>> {
    try {
      return await (this.#span === undefined ? step() : this.#span.run(step));
    } catch (error) {
      return failed(this.failInternally(error));
    }
  }

  /**
   * Performs the operation of a call that was received, records its success, and returns the response that `respond`
   * builds from the reply. `signedIn` replaces the credentials in the headers.
   */
  perform<Response>(
    operation: Operation,
    members: Members,
    respond: (reply: Reply) => Response,
    signedIn?: ManagementCaller,
  ): Promise<Result<Response, Failure>> {
    return this.run(async () => {
      const account = this.#account;
      if (account === undefined) throw new Error('the call was not received');
      const { clientId = '', clientSecret = '' } = signedIn ?? this.credentials;
      const isStrict = this.#isStrict();
      const strictFailure = isStrict ? strictFailureOf(operation, members) : undefined;
      if (strictFailure !== undefined) return failed(strictFailure);
      const reply = await operation.handle(members, {
        account,
        clientId,
        clientSecret,
        sessionDigest: signedIn?.sessionDigest,
        timeLeftMs: () => this.timeLeftMs(),
        concerns: (order) => this.concerns(order),
        waitMs: this.waitMs(),
        isStrict,
        pause: (wait) => this.pause(wait),
      });
      const authenticated = this.#pausedMs > 0 ? await this.#authenticateAgain?.() : undefined;
      if (authenticated?.ok === false) return authenticated;
      if (!reply.ok) return reply;
      const response = respond(isStrict ? { preferenceApplied: 'handling=strict', ...reply.value } : reply.value);
      this.succeed(reply.value.outcome);
      return success(response);
    });
  }

  /**
   * Whether the preference `handling` is `strict`, for a message in JSON. Only HTTP has preferences (RFC 7240, 4.4),
   * and Protobuf does not report unknown members by name.
   */
  #isStrict(): boolean {
    return this.hasJsonBody && this.#preferences?.get('handling')?.toLowerCase() === 'strict';
  }

  /**
   * The time of the preference `wait` in milliseconds, up to the maximum (RFC 7240, 4.3). Only the JSON API supports
   * it.
   */
  waitMs(): number {
    const [seconds = 0] = /^\d{1,9}$/.exec((this.protocol === 'json' && this.#preferences?.get('wait')) || '') ?? [];
    return 1_000 * Math.min(Number(seconds), eventWatchLimits.waitSecondsMax);
  }

  /**
   * Begins a streamed response, which holds no permit. The time of the stream does not count towards the deadline or
   * the duration of the call. The signal aborts when the call ends.
   */
  beginStream(): { readonly account: Account | undefined; readonly signal: AbortSignal } {
    this.#streamsSince = performance.now();
    const signal = this.#giveUpPermit();
    this.succeed('ok');
    return { account: this.#account, signal };
  }

  /**
   * Waits without a permit. The waiting time does not count towards the deadline or the duration of the call. The
   * signal aborts when the call ends.
   */
  async pause<Value>(wait: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const signal = this.#giveUpPermit();
    const pausedAt = performance.now();
    const value = await wait(signal);
    this.#pausedMs += performance.now() - pausedAt;
    return value;
  }

  /** Releases the permit before the call ends. The signal aborts when the call ends. */
  #giveUpPermit(): AbortSignal {
    this.#permit?.release();
    this.#permit = undefined;
    this.#pause = new AbortController();
    if (this.#hasEnded) this.#pause.abort();
    return this.#pause.signal;
  }

  /**
   * Records that the body has arrived, or that the deadline passed first. Checks both the outcome of the body's timer,
   * which can fire slightly early, and the clock.
   */
  bodyReceived(body: CallBody): void {
    this.#isClientLate ||= body === 'deadline_exceeded' || this.timeLeftMs() <= 0;
  }

  /** Records a success. The first outcome counts. */
  succeed(outcome: Success): void {
    this.#outcome ??= outcome;
  }

  /** Records the failure that the response reports, and returns it. The first outcome counts. */
  fail(failure: Failure): Failure {
    this.#outcome ??= this.#isClientLate && failure.kind === 'deadline_exceeded' ? 'client_timeout' : failure.kind;
    this.#fields ??= fieldsOf(failure);
    return failure;
  }

  /** Logs a bug, without any value of the request, and returns the failure for the client. */
  failInternally(error: unknown): Failure {
    this.#deps.logger.error({ err: error, request_id: this.requestId }, 'call failed');
    return this.fail({ kind: 'internal' });
  }

  /**
   * Releases the permit, and logs and counts the call. Called at the end of the response, or when the client
   * disconnects before that.
   */
  end({ isAnswered, status }: { readonly isAnswered: boolean; readonly status: number }): void {
    this.#hasEnded = true;
    this.#pause?.abort();
    this.#permit?.release();
    const code = this.#outcome ?? (isAnswered ? (outcomeOfStatus.get(status) ?? 'unreadable') : 'cancelled');
    const durationMs = (this.#streamsSince ?? performance.now()) - this.#startedAt - this.#pausedMs;
    const { protocol, operation } = this;
    const labels = { protocol, operation, code };
    this.#deps.recordCall(labels, durationMs);
    const { httpMethod, route } = this;
    const grpcStatus = grpcStatusOf(code);
    this.#span?.end(labels, { httpMethod, route, httpStatus: status, grpcStatus, isError: isServerError(code) });
    this.#deps.callLog.write({
      request_id: this.requestId,
      trace_id: this.#span?.traceId,
      protocol,
      operation,
      remote_address: this.peer.address,
      merchant_id: this.#account?.kind === 'merchant' ? this.#account.id : this.#order?.merchantId,
      checkout_id: this.#account?.kind === 'checkout' ? this.#account.id : undefined,
      order_id: this.#order?.fields.order_id,
      service_order_id: this.#order && 'serviceOrderId' in this.#order ? this.#order.serviceOrderId : undefined,
      order_status: this.#order?.orderStatus,
      code,
      ...(protocol.startsWith('grpc') ? { grpc_status: grpcStatus } : { http_status: status }),
      fields: this.#fields,
      duration_ms: Math.round(durationMs * 1_000) / 1_000,
    });
  }
}

/**
 * Returns the failure of a strict call with members that its operation does not have, so that a misspelled member is
 * noticed, or with members that are null. A serializer writes null for a value that it cannot represent, such as an
 * invalid date, and an order whose expiry is null never expires.
 */
function strictFailureOf({ method, fieldErrors }: Operation, members: Members): Failure | undefined {
  const isKnown = (name: string) => method.input.fields.some(({ jsonName }) => jsonName === name);
  const broken = Object.entries(members).flatMap(([field, value]): readonly FieldError<string>[] => {
    if (!isKnown(field)) return [{ field, code: 'unknown_field', message: 'is unknown' }];
    return value === null && !mayBeNull(field) ? [{ field, code: 'wrong_type', message: 'must not be null' }] : [];
  });
  if (broken.length === 0) return undefined;
  const kind = errorsOf(method).includes('invalid_request') ? 'invalid_request' : 'invalid_order';
  const errors = fieldErrors?.(members) ?? [];
  const isNew = ({ field }: FieldError<string>) => !errors.some((error) => error.field === field);
  return { kind, errors: [...errors, ...broken.filter(isNew)] };
}

/** The canonical name of the status that a gRPC client gets; absent where Fastify or Connect chose it. */
function grpcStatusOf(code: Outcome): string | null | undefined {
  if (code === 'client_timeout') return errorCatalogue.deadline_exceeded.grpcStatus;
  if (code in errorCatalogue) return errorCatalogue[code as FailureCode].grpcStatus;
  return code === 'cancelled' ? 'CANCELLED' : code === 'unreadable' ? undefined : 'OK';
}

/** The names of the fields of a failure: the API's names, without values. */
function fieldsOf(failure: Failure): readonly string[] | undefined {
  if ('fields' in failure) return failure.fields;
  if (!('errors' in failure)) return undefined;
  // The name of an unknown parameter or a metadata key can be any text.
  return failure.errors.map(({ field, code }) =>
    code === 'unknown_field' ? code : field.startsWith('metadata.') ? 'metadata' : field,
  );
}
