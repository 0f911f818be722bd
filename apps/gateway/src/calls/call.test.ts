import type { IncomingHttpHeaders } from 'node:http';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Account, AccountId } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, success } from '@order-gateway/domain/result';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { credentials, fixedDeps, merchant } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import { callTimeoutMs, fairTimeoutMs } from '../limits.ts';
import { Call, type CallDeps, type Protocol } from './call.ts';
import type { Caller, Operation, Reply } from './operation.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** Starts a call, and records what it does with its peer and its permit. */
function startCall(
  protocol: Protocol = 'json',
  headers: IncomingHttpHeaders = {},
  changedDeps: Partial<CallDeps> = {},
) {
  const { logger, calls, errors } = createMemoryLogger();
  const recordCall = vi.fn<CallDeps['recordCall']>();
  const markAuthenticated = vi.fn();
  const peer = { address: '192.0.2.1', markAuthenticated, markIdle() {} };
  const call = new Call({ ...fixedDeps(logger), callTimeoutMs, recordCall, ...changedDeps }, protocol, headers, peer);
  const release = vi.fn();
  call.hold({ start: async () => {}, release });
  return { call, calls, errors, recordCall, markAuthenticated, release };
}

const answered = { isAnswered: true, status: 200 };

test.each([
  [fairTimeoutMs - 1, Buffer.alloc(0), 'client_timeout', 'info'],
  [fairTimeoutMs, Buffer.alloc(0), 'deadline_exceeded', 'error'],
  [undefined, Buffer.alloc(0), 'deadline_exceeded', 'error'],
  [undefined, 'deadline_exceeded', 'client_timeout', 'info'],
] as const)(
  'with a client timeout of %s ms and the body %j, a missed deadline is logged as %s',
  (timeoutMs, body, code, level) => {
    const { call, calls } = startCall('grpc');
    call.limitTimeout(timeoutMs);
    call.bodyReceived(body);
    call.fail({ kind: 'deadline_exceeded' });
    call.end(answered);
    expect(calls).toMatchObject([{ code, level, grpc_status: 'DEADLINE_EXCEEDED' }]);
  },
);

test('if the body arrives at the deadline or later, only deadline_exceeded becomes client_timeout', () => {
  for (const [afterMs, code] of [
    [callTimeoutMs - 1, 'deadline_exceeded'],
    [callTimeoutMs, 'client_timeout'],
  ] as const) {
    const { call, calls } = startCall();
    vi.advanceTimersByTime(afterMs);
    call.bodyReceived(Buffer.alloc(0));
    call.fail({ kind: 'deadline_exceeded' });
    call.end(answered);
    expect(calls).toMatchObject([{ code }]);
  }
  const { call, calls } = startCall();
  call.bodyReceived('deadline_exceeded');
  call.fail({ kind: 'unavailable' });
  call.end(answered);
  expect(calls).toMatchObject([{ code: 'unavailable' }]);
});

test('a client can shorten the deadline, but not extend it', () => {
  const { call } = startCall();
  call.limitTimeout(undefined);
  expect(call.timeLeftMs()).toBe(callTimeoutMs);
  vi.advanceTimersByTime(1_000);
  expect(call.timeLeftMs()).toBe(callTimeoutMs - 1_000);
  call.limitTimeout(callTimeoutMs + 1);
  expect(call.timeLeftMs()).toBe(callTimeoutMs - 1_000);
  call.limitTimeout(1_500);
  expect(call.timeLeftMs()).toBe(500);
});

test.each([
  ['A-Za_z0.9', true],
  ['a'.repeat(128), true],
  ['a'.repeat(129), false],
  ['', false],
  ['a b', false],
  [undefined, false],
])('the client may choose the request id %j: %s', (sent, isKept) => {
  const { call, calls } = startCall('json', { 'x-request-id': sent });
  expect(call.requestId).toMatch(isKept ? (sent ?? '') : /^[A-Za-z0-9]{16}$/);
  call.end(answered);
  expect(calls).toMatchObject([{ request_id: call.requestId }]);
});

test('a call is logged once with its account, order, fields, duration and status', () => {
  const { call, calls, recordCall, markAuthenticated } = startCall();
  const order = sampleOrder(merchant.id);
  expect(markAuthenticated).not.toHaveBeenCalled();
  call.authenticated(merchant);
  expect(markAuthenticated).toHaveBeenCalledOnce();
  call.operation = 'CreateOrder';
  call.concerns(order);
  call.fail({ kind: 'order_id_conflict', fields: ['order_note'] });
  call.succeed('created');
  call.fail({ kind: 'internal' });
  vi.advanceTimersByTime(12.3456);
  expect(call.hasEnded).toBe(false);
  call.end({ isAnswered: true, status: 409 });
  expect(call.hasEnded).toBe(true);
  expect(calls).toEqual([
    expect.objectContaining({
      level: 'info',
      protocol: 'json',
      operation: 'CreateOrder',
      remote_address: '192.0.2.1',
      merchant_id: merchant.id,
      order_id: order.fields.order_id,
      service_order_id: order.serviceOrderId,
      order_status: 'UN_PAID',
      code: 'order_id_conflict',
      http_status: 409,
      fields: ['order_note'],
      duration_ms: 12.346,
    }),
  ]);
  expect(calls[0]).not.toHaveProperty('checkout_id');
  expect(calls[0]).not.toHaveProperty('grpc_status');
  const labels = { protocol: 'json', operation: 'CreateOrder', code: 'order_id_conflict' };
  expect(recordCall).toHaveBeenCalledExactlyOnceWith(labels, expect.closeTo(12.3456));
});

test('the call of a checkout system is logged with the merchant of its order', () => {
  const { call, calls } = startCall('grpc-web');
  call.authenticated({ kind: 'checkout', id: 9 as AccountId } as Account);
  const { serviceOrderId: _, ...order } = sampleOrder(merchant.id);
  call.concerns(order);
  call.succeed('created');
  call.end(answered);
  expect(calls).toMatchObject([{ merchant_id: merchant.id, checkout_id: 9, operation: 'unknown', grpc_status: 'OK' }]);
  expect(calls[0]).not.toHaveProperty('service_order_id');
  expect(calls[0]).not.toHaveProperty('http_status');
});

test.each<[Failure, readonly string[] | undefined]>([
  [{ kind: 'not_found' }, undefined],
  [
    {
      kind: 'invalid_order',
      errors: [
        { field: 'order_amount', code: 'missing', message: 'is missing' },
        { field: 'customer text', code: 'unknown_field', message: 'is unknown' },
        { field: 'metadata.customer text', code: 'too_long', message: 'is too long' },
      ],
    },
    ['order_amount', 'unknown_field', 'metadata'],
  ],
])('the log line of the failure %j contains no text from the client', (failure, fields) => {
  const { call, calls } = startCall();
  expect(call.fail(failure)).toBe(failure);
  call.end(answered);
  expect(calls[0]?.fields).toEqual(fields);
});

test.each([
  [404, 'not_found', 'NOT_FOUND'],
  [405, 'method_not_allowed', undefined],
  [415, 'unsupported_media_type', undefined],
  [400, 'unreadable', undefined],
])('a call without an outcome that gets the status %i is logged as %s', (status, code, grpcStatus) => {
  const { call, calls } = startCall('grpc');
  call.end({ isAnswered: true, status });
  expect(calls).toMatchObject([{ code }]);
  expect(calls[0]?.grpc_status ?? undefined).toBe(grpcStatus);
});

test('a call whose client disconnects is cancelled', () => {
  const { call, calls, release } = startCall('grpc');
  call.end({ isAnswered: false, status: 404 });
  expect(calls).toMatchObject([{ code: 'cancelled', grpc_status: 'CANCELLED' }]);
  expect(release).toHaveBeenCalledOnce();
});

test('a stream holds no permit, its time is not part of the duration, and a disconnection is not a failure', () => {
  const { call, calls, release } = startCall();
  call.authenticated(merchant);
  vi.advanceTimersByTime(20);
  const { account, signal } = call.beginStream();
  expect([account, release.mock.calls.length, signal.aborted]).toEqual([merchant, 1, false]);
  vi.advanceTimersByTime(60_000);
  call.end({ isAnswered: false, status: 200 });
  expect([release.mock.calls.length, signal.aborted]).toEqual([1, true]);
  expect(calls).toMatchObject([{ code: 'ok', duration_ms: 20 }]);
});

test('a pause holds no permit, and extends the deadline by its duration', async () => {
  const { call, calls, release } = startCall();
  vi.advanceTimersByTime(5);
  const signals: AbortSignal[] = [];
  const wait = async (signal: AbortSignal) => {
    signals.push(signal);
    expect(release).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(20_000);
    return 'page';
  };
  expect(await call.pause(wait)).toBe('page');
  expect(call.timeLeftMs()).toBe(callTimeoutMs - 5);
  call.end(answered);
  expect(release).toHaveBeenCalledOnce();
  expect(calls).toMatchObject([{ duration_ms: 5 }]);
  await call.pause(wait);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test.each([
  ['json', '7', 7_000],
  ['json', '20', 20_000],
  ['json', '999999999', 20_000],
  ['json', '1234567890', 0],
  ['json', '-1', 0],
  ['json', '7s', 0],
  ['connect', '7', 0],
] as const)('over %s, the preference wait=%s means %i ms', (protocol, seconds, ms) => {
  expect(startCall(protocol, { prefer: `wait=${seconds}` }).call.waitMs()).toBe(ms);
  expect(startCall(protocol).call.waitMs()).toBe(0);
});

/** Performs an operation that succeeds unless `reply` is given. Also returns the callers that the operation got. */
function perform(
  { call }: { readonly call: Call },
  {
    reply = success({ body: { order_id: 'a' }, outcome: 'created' }),
    members = {},
    ...changes
  } = {} as Partial<Operation> & {
    readonly reply?: Awaited<ReturnType<Operation['handle']>>;
    readonly members?: Readonly<Record<string, unknown>>;
    readonly signedIn?: Parameters<Call['perform']>[3];
  },
) {
  const callers: Caller[] = [];
  const handle = async (_: unknown, caller: Caller) => {
    callers.push(caller);
    return reply;
  };
  const operation: Operation = { method: OrderService.method.createOrder, handle, ...changes };
  const respond = (response: Reply) => response;
  return { result: call.perform(operation, members, respond, changes.signedIn), callers };
}

test('an operation gets the account, the credentials and the deadline of its call', async () => {
  const { clientId, clientSecret } = credentials;
  const started = startCall('json', { 'x-client-id': clientId, 'x-client-secret': clientSecret, prefer: 'wait=3' });
  const { call, calls } = started;
  call.authenticated(merchant);
  const { result, callers } = perform(started);
  expect(await result).toEqual(success({ body: { order_id: 'a' }, outcome: 'created' }));
  const [caller] = callers;
  expect(caller).toMatchObject({ account: merchant, clientId, clientSecret, waitMs: 3_000, isStrict: false });
  expect(caller?.sessionDigest).toBeUndefined();
  expect(caller?.timeLeftMs()).toBe(callTimeoutMs);
  expect(await caller?.pause(async () => 'page')).toBe('page');
  caller?.concerns(sampleOrder(merchant.id));
  call.end(answered);
  expect(calls).toMatchObject([{ code: 'created', order_status: 'UN_PAID' }]);
});

test('a console session replaces the credentials in the headers', async () => {
  const started = startCall('json', { 'x-client-id': 'app_header', 'x-client-secret': 'secret' });
  started.call.authenticated(merchant);
  const sessionDigest = new Uint8Array(32);
  const { result, callers } = perform(started, { signedIn: { clientId: 'app_1', clientSecret: '', sessionDigest } });
  expect((await result).ok).toBe(true);
  expect(callers).toMatchObject([{ clientId: 'app_1', clientSecret: '', sessionDigest }]);
});

test('the failure of an operation is returned, and performing an unreceived call is logged as a bug', async () => {
  const started = startCall();
  started.call.authenticated(merchant);
  const failure = failed<Failure>({ kind: 'not_found' });
  expect(await perform(started, { reply: failure }).result).toEqual(failure);

  const unauthenticated = startCall();
  expect(await perform(unauthenticated).result).toEqual(failed({ kind: 'internal' }));
  unauthenticated.call.end({ isAnswered: true, status: 500 });
  expect(unauthenticated.calls).toMatchObject([{ code: 'internal', level: 'error' }]);
  const { requestId } = unauthenticated.call;
  expect(unauthenticated.errors).toMatchObject([{ err: { type: 'Error' }, request_id: requestId, msg: 'call failed' }]);
});

const strict = { prefer: 'Handling=STRICT' };

test('a strict call without unknown members says that it was strict', async () => {
  const started = startCall('json', strict);
  started.call.authenticated(merchant);
  started.call.hasJsonBody = true;
  const { result, callers } = perform(started, { members: { order_id: 'a' } });
  expect(await result).toMatchObject(success({ preferenceApplied: 'handling=strict' } as Reply));
  expect(callers).toMatchObject([{ isStrict: true }]);
});

test('a strict call with an unknown member fails with all errors of its members', async () => {
  const started = startCall('json', strict);
  started.call.authenticated(merchant);
  started.call.hasJsonBody = true;
  const fieldError = { field: 'order_id', code: 'missing', message: 'is missing' } as const;
  const members = { order_note: 'a', order_nota: 'b' };
  const unknown = { field: 'order_nota', code: 'unknown_field', message: 'is unknown' };
  const { result, callers } = perform(started, { members, fieldErrors: () => [fieldError] });
  expect(await result).toEqual(failed({ kind: 'invalid_order', errors: [fieldError, unknown] } as Failure));
  expect(callers).toEqual([]);
  expect(await perform(started, { members }).result).toEqual(
    failed({ kind: 'invalid_order', errors: [unknown] } as Failure),
  );
  const listed = await perform(started, { members, method: OrderService.method.listOrders }).result;
  expect(listed).toMatchObject(failed({ kind: 'invalid_request' } as Failure));
});

test('a strict call with null fails, except for the optional texts of an order', async () => {
  const started = startCall('json', strict);
  started.call.authenticated(merchant);
  started.call.hasJsonBody = true;
  const optional = { customer_address_line2: null, customer_locale: null };
  const missing = { field: 'order_id', code: 'missing', message: 'is missing' } as const;
  const members = { ...optional, order_id: null, order_expires_at: null, metadata: null };
  const isNull = (field: string) => ({ field, code: 'wrong_type', message: 'must not be null' });
  const errors = [missing, isNull('order_expires_at'), isNull('metadata')];
  expect(await perform(started, { members, fieldErrors: () => [missing] }).result).toEqual(
    failed({ kind: 'invalid_order', errors } as Failure),
  );
  expect(await perform(started, { members: optional }).result).toMatchObject({ ok: true });
});

test.each([
  [strict, false],
  [{ prefer: 'handling=lenient' }, true],
  [{}, true],
])('a call with the headers %j and a JSON body (%s) ignores unknown members', async (headers, hasJsonBody) => {
  const started = startCall('json', headers);
  started.call.authenticated(merchant);
  started.call.hasJsonBody = hasJsonBody;
  const { result, callers } = perform(started, { members: { order_nota: 'b' } });
  expect(await result).toEqual(success({ body: { order_id: 'a' }, outcome: 'created' }));
  expect(callers).toMatchObject([{ isStrict: false }]);
});

test('a traced call runs its steps in its span, and ends the span with its outcome', async () => {
  const run = vi.fn((step: () => unknown) => step());
  const end = vi.fn();
  const startSpan = vi.fn(() => ({ traceId: 'trace', run, end }));
  const headers = { traceparent: 'parent' };
  const { call, calls } = startCall('connect', headers, {
    tracing: { startCall: startSpan } as unknown as CallDeps['tracing'],
  });
  expect(startSpan).toHaveBeenCalledExactlyOnceWith(headers);
  expect(await call.run(async () => success('value'))).toEqual(success('value'));
  expect(run).toHaveBeenCalledOnce();
  call.httpMethod = 'POST';
  call.route = '/order';
  call.fail({ kind: 'unavailable' });
  call.end({ isAnswered: true, status: 503 });
  expect(end).toHaveBeenCalledExactlyOnceWith(
    { protocol: 'connect', operation: 'unknown', code: 'unavailable' },
    { httpMethod: 'POST', route: '/order', httpStatus: 503, grpcStatus: 'UNAVAILABLE', isError: true },
  );
  expect(calls).toMatchObject([{ trace_id: 'trace' }]);
});
