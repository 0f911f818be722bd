import type { IncomingHttpHeaders } from 'node:http';
import type { Account } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { settledWithin } from '@order-gateway/runtime/settled-within';
import type { Admission, Permit, RateLimit } from './admission.ts';
import type { Authenticate } from './authenticate.ts';
import { type BodyReading, bodyFailure, type ReadBody } from './body/call-body.ts';
import { Call, type CallDeps, type Protocol } from './call.ts';
import type { Members, Operation, Reply } from './operation.ts';
import type { Pause } from './pause.ts';
import type { Peer } from './peers/connection-limit.ts';
import { retryAfter, storageFailure } from './store-failure.ts';
import type { UnauthenticatedCalls } from './unauthenticated-calls.ts';

/** The dependencies of all calls. */
export interface CallsDeps extends CallDeps {
  readonly readBody: ReadBody;
  readonly authenticate: Authenticate;
  /** Bounds failed authentications. */
  readonly unauthenticatedCalls: UnauthenticatedCalls;
  readonly rateLimit: RateLimit;
  readonly admission: Admission;
  /** Delays `overloaded` and `rate_limited`. */
  readonly rejectionPause: Pause;
}

/** The data that a transport has about a call once its headers have arrived. */
export interface IncomingCall {
  readonly headers: IncomingHttpHeaders;
  /** The client's time limit in milliseconds; absent: the client sets none. */
  readonly timeoutMs?: number | undefined;
  readonly bodyBytesMax: number;
  readonly isMediaTypeSupported: boolean;
  /** Replaces the check of the credentials in the headers, for example with the check of a console session. */
  readonly authenticate?: ((timeoutMs: number) => Promise<Result<Account, Failure>>) | undefined;
  /** The kind of account that may make the call; absent: anyone may, without credentials. */
  readonly accountKind: Account['kind'] | undefined;
  /** Starts to read the body; absent: the call has none, or the transport streams it. */
  readonly startReading?: ((timeoutMs: number) => BodyReading) | undefined;
  /**
   * Whether reading starts before the credentials are checked. In HTTP/2, Node.js would otherwise keep every frame of
   * an unread body in memory, and the limit for all bodies would not apply to those frames.
   */
  readonly readsImmediately?: boolean;
}

/** The members of a message, or why it has none; `undefined` if the call is not to be performed. */
type Decoded = Result<Members, Failure> | undefined;

/** How a call enters: a transport knows its headers, and how its message is encoded. */
export interface Entrance {
  readonly incoming: IncomingCall;
  /**
   * Reads the members of the message in the body. Returns `undefined` if there is nothing to perform: the client has
   * disconnected, or Connect continues the call.
   */
  decode(body: Buffer): Decoded | Promise<Decoded>;
}

/** How a transport ends a call. */
export interface Exit<Response> {
  /** Responds to a call that succeeded. A bug in this function makes the call fail as `internal`. */
  respond(reply: Reply): Response;
  /** Records the failure of the call, and responds with it. */
  reject(failure: Failure): Response;
}

/** The functions of a transport in a call. */
export interface Exchange<Response> extends Entrance, Exit<Response> {}

/** Handles the calls of every protocol. */
export type Calls = ReturnType<typeof createCalls>;

const noBody = success(Buffer.alloc(0));

/** Returns the body of a call once it has arrived, or the failure if it is incomplete, too large, late or dropped. */
export async function takeBody(call: Call, reading: BodyReading): Promise<Result<Buffer, Failure>> {
  const body = await reading.take();
  call.bodyReceived(body);
  if (typeof body === 'string') return failed(bodyFailure(body));
  return call.timeLeftMs() > 0 ? success(body) : failed({ kind: 'deadline_exceeded' });
}

/**
 * Creates the function that receives the calls of every protocol. It sets the deadline and then checks, in this order,
 * the announced size, media type, credentials, kind of account, rate, capacity and body. It returns the body, or the
 * failure of the first check that fails.
 *
 * Earlier checks: the number of connections (`http/sockets.ts`, `rpc/sessions.ts`), and the headers, their size and the
 * route (`http/server.ts`, `rpc/server.ts`).
 *
 * Later checks: JSON or Protobuf, then the fields, the checksum and the expiry (the operation).
 */
function createReceive(deps: Omit<CallsDeps, keyof CallDeps>) {
  const admit = async (
    call: Call,
    kind: Account['kind'],
    authenticateCall: IncomingCall['authenticate'],
  ): Promise<Result<Permit, Failure>> => {
    const authenticate = () =>
      authenticateCall?.(call.timeLeftMs()) ?? deps.authenticate(call.credentials, call.timeLeftMs());
    const account = await authenticate();
    if (!account.ok) {
      return account.failure.kind === 'unauthenticated'
        ? failed(await deps.unauthenticatedCalls.reject(call.peer))
        : account;
    }
    call.authenticated(account.value, authenticate);
    if (account.value.kind !== kind) return failed({ kind: 'permission_denied' });
    const waitMs = deps.rateLimit(account.value);
    // A caller that has disconnected needs no permit, because it gets no response.
    const permit = waitMs !== undefined || call.hasEnded ? undefined : deps.admission.acquire(account.value.id);
    if (permit !== undefined) return success(permit);
    await deps.rejectionPause(call.peer);
    return failed(
      waitMs === undefined ? storageFailure('overloaded') : { kind: 'rate_limited', retryAfterMs: retryAfter(waitMs) },
    );
  };

  return (call: Call, incoming: IncomingCall): Promise<Result<Buffer, Failure>> =>
    call.run(async () => {
      const { headers, accountKind, startReading } = incoming;
      call.limitTimeout(incoming.timeoutMs);
      if (Number(headers['content-length']) > incoming.bodyBytesMax) return failed({ kind: 'body_too_large' });
      if (!incoming.isMediaTypeSupported) return failed({ kind: 'unsupported_media_type' });
      const earlyReading = incoming.readsImmediately ? startReading?.(call.timeLeftMs()) : undefined;
      let permit: Permit | undefined;
      if (accountKind !== undefined) {
        const admitted = await admit(call, accountKind, incoming.authenticate);
        if (!admitted.ok) return admitted;
        permit = admitted.value;
        call.hold(permit);
      }
      const reading = earlyReading ?? startReading?.(call.timeLeftMs());
      const body = reading === undefined ? noBody : await takeBody(call, reading);
      if (!body.ok) {
        if (body.failure.kind === 'overloaded') await deps.rejectionPause(call.peer);
        return body;
      }
      const slot = permit?.start();
      const isLate = slot !== undefined && (await settledWithin(call.timeLeftMs(), slot)) === 'deadline_exceeded';
      // The time is checked too, because Node.js's timers may fire up to a millisecond early.
      if (isLate || call.timeLeftMs() <= 0) return failed({ kind: 'deadline_exceeded' });
      return body;
    });
}

/**
 * Creates the functions that handle the calls of every protocol. `accept` receives a call and reads its message.
 * `serve` then performs the operation and responds. Connect performs the calls of its own protocols, between their
 * messages and their responses ({@link perform}).
 */
export function createCalls(deps: CallsDeps) {
  const { readBody, authenticate, unauthenticatedCalls, rateLimit, callTimeoutMs } = deps;
  const start = (protocol: Protocol, headers: IncomingHttpHeaders, peer: Peer) =>
    new Call(deps, protocol, headers, peer);
  const receive = createReceive(deps);
  const accept = (call: Call, { incoming, decode }: Entrance): Promise<Decoded> =>
    receive(call, incoming).then((received) => (received.ok ? decode(received.value) : received));
  const serve = async <Response>(
    call: Call,
    operation: Operation | undefined,
    exchange: Exchange<Response>,
  ): Promise<Response | undefined> => {
    const members = await accept(call, exchange);
    if (members?.ok === false) return exchange.reject(members.failure);
    return members && operation && perform(call, operation, members, exchange);
  };
  return { start, readBody, receive, accept, serve, authenticate, unauthenticatedCalls, rateLimit, callTimeoutMs };
}

/** Performs the operation of a call whose message was read, and responds. */
export async function perform<Response>(
  call: Call,
  operation: Operation,
  members: Result<Members, Failure>,
  { respond, reject }: Exit<Response>,
): Promise<Response> {
  const performed = members.ok ? await call.perform(operation, members.value, respond) : members;
  return performed.ok ? performed.value : reject(performed.failure);
}
