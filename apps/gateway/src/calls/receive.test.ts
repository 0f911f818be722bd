import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, success } from '@order-gateway/domain/result';
import { expect, test, vi } from 'vitest';
import { fixedDeps, merchant } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import type { Permit } from './admission.ts';
import type { CallBody } from './body/call-body.ts';
import { Call } from './call.ts';
import type { Operation } from './operation.ts';
import { noPeer } from './peers/connection-limit.ts';
import { type CallsDeps, createCalls, type Exchange, type IncomingCall } from './receive.ts';

const body = Buffer.from('{}');

/** A call that passes every check. */
const incoming = {
  headers: { 'content-length': '2' },
  bodyBytesMax: 2,
  isMediaTypeSupported: true,
  accountKind: 'merchant',
  startReading: () => reading(body),
} satisfies IncomingCall;

function reading(result: CallBody) {
  return { take: async () => result };
}

/** Receives a call, and records the steps that the dependencies perform. Every check passes unless changed. */
function receive(changedCall: Partial<IncomingCall> = {}, changedDeps: Partial<CallsDeps> = {}, hasEnded = false) {
  const { logger, calls } = createMemoryLogger();
  const steps: string[] = [];
  const permit: Permit = { start: async () => void steps.push('start'), release: () => void steps.push('release') };
  const fixed = fixedDeps(logger);
  const deps = {
    ...fixed,
    authenticate: async () => success(merchant),
    unauthenticatedCalls: {
      ...fixed.unauthenticatedCalls,
      reject: async (): Promise<Failure> => {
        steps.push('delay');
        return { kind: 'unauthenticated' };
      },
    },
    rejectionPause: async () => void steps.push('pause'),
    admission: {
      acquire: () => {
        steps.push('acquire');
        return permit;
      },
    },
    ...changedDeps,
  };
  const call = new Call(deps, 'json', {}, noPeer);
  if (hasEnded) call.end({ isAnswered: false, status: 0 });
  const serving = createCalls(deps);
  return { result: serving.receive(call, { ...incoming, ...changedCall }), call, calls, steps };
}

/** Serves a call, and records what the transport and the operation do. */
async function serve({ incoming: changedCall, ...changed }: Partial<Exchange<string>> = {}) {
  const { logger, errors } = createMemoryLogger();
  const deps = { ...fixedDeps(logger), authenticate: async () => success(merchant) };
  const steps: string[] = [];
  const operation: Operation = {
    method: OrderService.method.createOrder,
    async handle(members) {
      steps.push(`handle ${JSON.stringify(members)}`);
      return success({ body: {}, outcome: 'created' });
    },
  };
  const response = await createCalls(deps).serve(new Call(deps, 'json', {}, noPeer), operation, {
    incoming: { ...incoming, ...changedCall },
    decode: (bytes) => success(JSON.parse(bytes.toString())),
    respond: ({ outcome }) => outcome,
    reject: ({ kind }) => kind,
    ...changed,
  });
  return { response, steps, errors };
}

test('a call that passes every check gets its body, and holds its permit until it ends', async () => {
  const { result, call, calls, steps } = receive();
  expect(await result).toEqual(success(body));
  expect(steps).toEqual(['acquire', 'start']);
  call.end({ isAnswered: true, status: 200 });
  expect(steps).toEqual(['acquire', 'start', 'release']);
  expect(calls).toMatchObject([{ merchant_id: merchant.id }]);
});

/** For each check, in order: a call that fails it, the failure, and the steps before the response. */
const checks: readonly (readonly [
  name: string,
  Partial<IncomingCall>,
  Partial<CallsDeps>,
  Partial<Failure>,
  steps: readonly string[],
])[] = [
  ['announced size', { headers: { 'content-length': '3' } }, {}, { kind: 'body_too_large' }, []],
  ['media type', { isMediaTypeSupported: false }, {}, { kind: 'unsupported_media_type' }, []],
  [
    'credentials',
    {},
    { authenticate: async () => failed({ kind: 'unauthenticated' }) },
    { kind: 'unauthenticated' },
    ['delay'],
  ],
  ['kind of account', { accountKind: 'checkout' }, {}, { kind: 'permission_denied' }, []],
  [
    'rate',
    {},
    { rateLimit: () => 5_000 },
    // The wait has random jitter of up to 2 seconds.
    { kind: 'rate_limited', retryAfterMs: expect.toSatisfy((ms: number) => ms >= 5_000 && ms <= 7_000) },
    ['pause'],
  ],
  ['capacity', {}, { admission: { acquire: () => undefined } }, { kind: 'overloaded' }, ['pause']],
  ['body', { startReading: () => reading('too_large') }, {}, { kind: 'body_too_large' }, ['acquire']],
];

test.for(checks)('the check of the %s rejects a call', async ([, changedCall, changedDeps, failure, steps]) => {
  const { result, steps: taken } = receive(changedCall, changedDeps);
  expect(await result).toMatchObject(failed(failure as Failure));
  expect(taken).toEqual(steps);
});

test.for(checks.slice(1).map((check, index) => [checks[index], check] as const))(
  'of two failed checks, the earlier one decides: $0.0, $1.0',
  async ([earlier, later]) => {
    const { result } = receive({ ...later[1], ...earlier?.[1] }, { ...later[2], ...earlier?.[2] });
    expect(await result).toMatchObject(failed(earlier?.[3] as Failure));
  },
);

test('a body without an announced size is not rejected before it arrives', async () => {
  expect(await receive({ headers: {} }).result).toEqual(success(body));
});

test('a lookup that fails is reported as it is, without the delay of rejected credentials', async () => {
  const failure = failed({ kind: 'unavailable' } as const);
  const { result, steps } = receive({}, { authenticate: async () => failure });
  expect(await result).toEqual(failure);
  expect(steps).toEqual([]);
});

test('the check of a session replaces that of the credentials', async () => {
  const authenticate = vi.fn(async () => success(merchant));
  const { result } = receive({ authenticate }, { authenticate: async () => failed({ kind: 'unauthenticated' }) });
  expect(await result).toEqual(success(body));
  const { callTimeoutMs } = fixedDeps(createMemoryLogger().logger);
  expect(authenticate).toHaveBeenCalledExactlyOnceWith(expect.toSatisfy((ms: number) => ms > 0 && ms <= callTimeoutMs));
});

test('a call that anyone may make needs neither credentials nor a permit', async () => {
  const authenticate = async () => failed({ kind: 'unauthenticated' } as const);
  const { result, steps } = receive({ accountKind: undefined, startReading: undefined }, { authenticate });
  expect(await result).toEqual(success(Buffer.alloc(0)));
  expect(steps).toEqual([]);
});

test('a caller that has disconnected takes no permit', async () => {
  const { result, steps } = receive({}, {}, true);
  expect(await result).toMatchObject(failed({ kind: 'overloaded' } as Failure));
  expect(steps).toEqual(['pause']);
});

test('reading starts before the credentials are checked only if the transport asks for it', async () => {
  for (const readsImmediately of [false, true]) {
    const startReading = vi.fn(() => reading(body));
    const authenticate = async () => failed({ kind: 'unauthenticated' } as const);
    await receive({ startReading, readsImmediately }, { authenticate }).result;
    expect(startReading).toHaveBeenCalledTimes(readsImmediately ? 1 : 0);
    const accepted = vi.fn(() => reading(body));
    await receive({ startReading: accepted, readsImmediately }).result;
    expect(accepted).toHaveBeenCalledTimes(1);
  }
});

test('the rejection of a body that was dropped because of overload is delayed', async () => {
  const dropped = receive({ startReading: () => reading('overloaded') });
  expect(await dropped.result).toMatchObject(failed({ kind: 'overloaded' } as Failure));
  expect(dropped.steps).toEqual(['acquire', 'pause']);
});

test.for([
  ['its body arrives', { timeoutMs: 30, startReading: () => ({ take: () => late(body) }) }],
  ['the rest of its body arrives', { startReading: () => reading('deadline_exceeded') }],
  [
    'it may start',
    { timeoutMs: 30 },
    { admission: { acquire: () => ({ start: () => late(undefined), release: () => {} }) } },
  ],
] as [string, Partial<IncomingCall>, Partial<CallsDeps>?][])(
  'if the deadline passes before %s, the call is logged as client_timeout',
  async ([, changedCall, changedDeps]) => {
    const { result, call, calls } = receive(changedCall, changedDeps);
    expect(await result).toEqual(failed({ kind: 'deadline_exceeded' }));
    call.fail({ kind: 'deadline_exceeded' });
    call.end({ isAnswered: true, status: 504 });
    expect(calls).toMatchObject([{ code: 'client_timeout' }]);
  },
);

/** Resolves after the deadline of a call that has 30 ms. */
function late<Value>(value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(resolve, 60, value));
}

test('a call does not start without a slot, even if a timer fires a little early', async () => {
  const admission = { acquire: () => ({ start: () => new Promise<void>(() => {}), release() {} }) };
  const calls = Array.from({ length: 20 }, (_, index) => receive({ timeoutMs: 20 + index / 20 }, { admission }).result);
  for (const result of await Promise.all(calls)) {
    expect(result).toEqual({ ok: false, failure: { kind: 'deadline_exceeded' } });
  }
});

test('a served call is received, read, performed and responded to', async () => {
  expect(await serve()).toEqual({ response: 'created', steps: ['handle {}'], errors: [] });
});

test.each<[string, Partial<Exchange<string>>, string | undefined]>([
  ['that is rejected', { incoming: { ...incoming, accountKind: 'checkout' } }, 'permission_denied'],
  ['without a valid message', { decode: () => failed({ kind: 'malformed_json', reason: '' }) }, 'malformed_json'],
  ['that Connect continues', { decode: () => undefined }, undefined],
])('a served call %s is not performed', async (_, exchange, response) => {
  expect(await serve(exchange)).toEqual({ response, steps: [], errors: [] });
});

test('a bug while a served call is responded to makes it fail as internal', async () => {
  const { response, errors } = await serve({
    respond() {
      throw new Error('a bug');
    },
  });
  expect(response).toBe('internal');
  expect(errors).toHaveLength(1);
});
