import { type ClientHttp2Session, constants } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { ServiceType } from '@order-gateway/contract/gateway/v1/order_pb';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
} from '@order-gateway/contract/gateway/v1/order_service_pb';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { credentials } from '../helpers/fixed-deps.ts';
import {
  callHeaders,
  createOrderPath,
  lengthPrefixed,
  openSession,
  orderData,
  type RawCall,
  type RawResponse,
  sendCall,
} from '../helpers/grpc/grpc-call.ts';
import { type RunningServer, startGrpcServer } from '../helpers/grpc/grpc-servers.ts';
import { orderMessage } from '../helpers/send-order.ts';

const callCount = Number(process.env.FAST_PATH_CALLS ?? 1_000);
const seed = 20_261_120;

let fast: RunningServer;
let connect: RunningServer;
let sessions: ClientHttp2Session[] = [];

/** The server closes a connection after too many resets, so each connection makes only this many calls. */
const callsOnSession = 100;

function renewSessions(): void {
  for (const session of sessions) session.close();
  sessions = [openSession(fast.port), openSession(connect.port)];
}

beforeAll(async () => {
  fast = await startGrpcServer();
  connect = await startGrpcServer({ hasFastPath: false });
});
afterAll(async () => {
  for (const session of sessions) session.close();
  await Promise.all([fast.close(), connect.close()]);
});

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.constantFrom('', ' ', 'a|b\\c', 'v1=00', 'x'.repeat(2_100)),
);

/** With these fields, an order is rejected with an error that repeats the note, percent-encoded. */
const inError = { orderNote: '100%25 of\nall \u{1f4da}', orderChecksum: 'v1=00' };

/**
 * A message with one of 241 order ids, so that replays and conflicts occur. Most are valid; some have random fields.
 */
const message = fc
  .record({
    orderId: fc.nat({ max: 240 }).map((number) => `order-${number}`),
    overrides: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom({}, {}, {}, {}, { orderNote: 'changed' }, inError) },
      fc.record(
        {
          orderId: text,
          orderAmount: fc.double(),
          orderCurrency: fc.constantFrom('EUR', 'JPY', 'eur', 'XXX'),
          orderNote: text,
          serviceType: fc.constantFrom(...([0, 1, 2, 3] as readonly ServiceType[])),
          customerPhone: text,
          orderChecksum: text,
          returnUrl: text,
        },
        { requiredKeys: [] },
      ),
    ),
  })
  .map(({ orderId, overrides }) =>
    toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, { ...orderMessage(orderId), ...overrides })),
  );

const complete = message.map((data) => ({ bytes: lengthPrefixed(data), ends: true, isComplete: true }));

/**
 * Timeouts that have expired when the call arrives. Such a call has a complete message, because otherwise which error
 * is found first would vary.
 */
const expiredTimeouts = ['0m', '1n', '0S'];

/** Bodies: complete messages, and what a correct client does not send. */
const body = fc.oneof(
  { weight: 4, arbitrary: complete },
  fc
    .tuple(message, fc.integer({ min: 1, max: 255 }))
    .map(([data, flags]) => ({ bytes: lengthPrefixed(data, { flags }), ends: true })),
  fc.tuple(message, fc.nat()).map(([data, cut]) => {
    const bytes = lengthPrefixed(data);
    return { bytes: bytes.subarray(0, cut % bytes.length), ends: true };
  }),
  fc
    .tuple(message, fc.constantFrom(0, 1, 65_537, 1_000_000, 0xffff_ffff))
    .map(([data, length]) => ({ bytes: lengthPrefixed(data, { length }), ends: true })),
  fc
    .tuple(message, message)
    .map(([one, two]) => ({ bytes: Buffer.concat([lengthPrefixed(one), lengthPrefixed(two)]), ends: true })),
  fc
    .tuple(message, fc.uint8Array({ maxLength: 9 }))
    .map(([data, excess]) => ({ bytes: Buffer.concat([lengthPrefixed(data), excess]), ends: true })),
  fc.uint8Array({ maxLength: 200 }).map((data) => ({ bytes: lengthPrefixed(data), ends: true })),
  fc
    .constantFrom(65_535, 65_536, 65_537)
    .map((length) => ({ bytes: lengthPrefixed(Buffer.alloc(length, 0xff)), ends: true })),
  fc.constant({ bytes: Buffer.alloc(0), ends: true }),
  fc.constant({ bytes: lengthPrefixed(Buffer.alloc(0), { length: 0x1_0001 }), ends: false }),
  fc.constant({ bytes: lengthPrefixed(Buffer.from([0xff]), {}), ends: true }),
);

const mostly = (valid: string, ...invalid: readonly string[]) =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(valid) }, fc.constantFrom(...invalid));

type Metadata = Readonly<Record<string, string | undefined>>;

const metadata: fc.Arbitrary<Metadata> = fc.record(
  {
    'x-client-id': mostly(credentials.clientId, '', 'app_0', credentials.clientId.toLowerCase()),
    'x-client-secret': mostly(credentials.clientSecret, '', 'sk_0', `${credentials.clientSecret}0`),
    'content-type': mostly(
      'application/grpc+proto',
      'APPLICATION/GRPC',
      'application/grpc+json',
      'application/grpc;x=y',
      'application/grpc-web+proto',
      'application/proto',
      'text/plain',
    ),
    'grpc-encoding': mostly('identity', 'gzip', 'br', 'snappy', '', 'identity,gzip'),
    'grpc-accept-encoding': fc.constantFrom('identity', 'gzip', 'identity,deflate,gzip', ''),
    'grpc-timeout': fc.constantFrom(
      '5S',
      '4000m',
      '1H',
      '500H',
      '2M',
      '5000000u',
      ...expiredTimeouts,
      '',
      '1',
      '-1S',
      '1.5S',
      '123456789S',
      '5s',
      'abc',
    ),
    'x-request-id': fc.constantFrom('mine-1', 'not mine', 'x'.repeat(129), ''),
    'trace-bin': fc.constantFrom('AAEC', 'AAEC,/w', 'not base64!'),
    'x-anything': fc.stringMatching(/^[ -~]{0,40}$/),
    te: fc.constant('trailers'),
    expect: mostly('100-continue', 'a miracle'),
    ':method': mostly('POST', 'GET', 'PUT'),
    ':path': mostly(createOrderPath, '/gateway.v1.OrderService/None', '*'),
    ':authority': mostly('127.0.0.1', '::1:9090', '[', 'not a host'),
  },
  { requiredKeys: [] },
);

const late: fc.Arbitrary<Metadata> = fc.record({ 'grpc-timeout': fc.constantFrom(...expiredTimeouts) });

const call: fc.Arbitrary<RawCall> = fc
  .record({
    sent: body,
    metadata: fc.oneof({ weight: 8, arbitrary: fc.constant<Metadata>({}) }, { weight: 4, arbitrary: metadata }, late),
    chunks: fc.nat({ max: 4 }),
  })
  .map(({ sent, metadata, chunks }) => ({
    headers: {
      ...callHeaders,
      ...metadata,
      ...(expiredTimeouts.includes(metadata['grpc-timeout'] ?? '') && !('isComplete' in sent)
        ? { 'grpc-timeout': '5S' }
        : {}),
    },
    chunks: cutInto(sent.bytes, chunks),
    ends: sent.ends,
  }));

function cutInto(bytes: Uint8Array, cuts: number): Uint8Array[] {
  const length = Math.ceil(bytes.length / (cuts + 1)) || 1;
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, index) =>
    bytes.subarray(index * length, (index + 1) * length),
  );
}

/**
 * The parts of a response that must be equal. Omits the date and `grpc-encoding`: Connect announces a compression that
 * the client accepts, although it does not compress small messages, and the fast path announces none. Decodes the
 * status message, because Connect encodes more characters than required.
 */
function comparable({ headers, trailers, body, closed }: RawResponse) {
  const { date: _date, 'grpc-encoding': _encoding, ...metadata } = headers;
  const message = trailers['grpc-message']?.toString() ?? '';
  const decoded = { ...trailers, 'grpc-message': decodeURIComponent(message) };
  return { metadata: { ...metadata }, trailers: decoded, body: decodedBody(body), closed };
}

/**
 * Omits the service_order_id, which can differ, because only one of the servers may have created a cancelled call's
 * order.
 */
function decodedBody(body: string): unknown {
  const bytes = Buffer.from(body, 'hex');
  if (bytes.length === 0) return '';
  const { serviceOrderId, ...rest } = fromBinary(CreateOrderResponseSchema, bytes.subarray(5));
  return { prefix: bytes.subarray(0, 5).toString('hex'), isId: serviceOrderId > 0n, rest };
}

/** Makes a call and cancels it. It may or may not create its order, so no other call uses the order's id. */
async function cancelCall(number: number): Promise<void> {
  const bytes = lengthPrefixed(orderData(`cancelled-${number}`));
  const cancelled = { headers: callHeaders, chunks: [bytes.subarray(0, number)], ends: false, cancels: true };
  const responses = await Promise.all(sessions.map((session) => sendCall(session, cancelled)));
  expect(responses.map(({ closed }) => closed)).toEqual([constants.NGHTTP2_CANCEL, constants.NGHTTP2_CANCEL]);
}

test(`the fast path responds to ${callCount} calls of all kinds, some of them cancelled, as Connect's handler does`, async () => {
  const outcomes = new Map<string, number>();
  let count = 0;
  for (const sample of fc.sample(call, { seed, numRuns: callCount })) {
    if (count % callsOnSession === 0) renewSessions();
    if (count % 20 === 0) await cancelCall(count);
    const responses = await Promise.all(sessions.map((session) => sendCall(session, sample)));
    count += 1;
    const [fromFastPath, fromConnect] = responses.map(comparable);
    expect(fromFastPath?.closed, JSON.stringify(sample)).not.toBe('open');
    expect(fromFastPath, JSON.stringify(sample)).toEqual(fromConnect);
    const status = String(responses[0]?.trailers['grpc-status'] ?? `HTTP ${responses[0]?.headers[':status']}`);
    outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
  }
  expect(count).toBe(callCount);
  // Shows that the sample produced every kind of response several times.
  for (const status of ['0', '3', '4', '6', '8', '12', '16', 'HTTP 405', 'HTTP 415']) {
    expect(outcomes.get(status) ?? 0, `responses with ${status}`).toBeGreaterThanOrEqual(5);
  }
  expect([fast.errors, connect.errors]).toEqual([[], []]);
});
