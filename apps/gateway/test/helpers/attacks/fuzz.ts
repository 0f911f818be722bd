import type { ClientHttp2Session } from 'node:http2';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { expect } from 'vitest';
import { callHeaders, lengthPrefixed, openSession, orderData, sendCall } from '../grpc/grpc-call.ts';
import { credentialHeaders, postOrder } from '../send-order.ts';

interface FuzzTarget {
  readonly url: string;
  readonly grpcPort: number;
  readonly credentials: Credentials;
}

/** The number of inputs sent at the same time. */
const concurrency = 16;

/** Bytes that are hard for parsers: the special bytes of JSON and Protobuf, and the boundaries of UTF-8. */
const evilBytes = fc.constantFrom(
  ...[0x00, 0x0a, 0x22, 0x2c, 0x2d, 0x2e, 0x30, 0x39, 0x3a, 0x5b, 0x5c, 0x5d, 0x65, 0x75, 0x7b, 0x7d, 0x7f],
  ...[0x80, 0xc0, 0xed, 0xf4, 0xff],
);

const evilTexts = fc.constantFrom(
  ...['"order_id":1,', '"order_amount":1e400,', '"__proto__":{},', '\\u0000', '\\ud800', '\\', '{"a":', '[', ']]'],
  ...['1e', '-', ',,', '\ufeff', 'null', 'true', '"', '""', '10.001', '99999999999999', '0.000000000001', '\u{1f600}'],
  ...['\u202e', '/*', 'NaN'],
);

/**
 * Replaces or duplicates up to 32 bytes at any position, or everything after it. Replacing no bytes, which is frequent,
 * inserts the replacement.
 */
const edit = fc.record({
  position: fc.nat(2_000),
  length: fc.oneof(fc.nat(32), fc.constantFrom(0, 1, Number.POSITIVE_INFINITY)),
  replacement: fc.oneof(
    fc.constant('twice' as const),
    fc.uint8Array({ maxLength: 1 }),
    evilBytes.map((byte) => Buffer.of(byte)),
    evilTexts.map((text) => Buffer.from(text)),
  ),
});

function mutated(input: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> {
  return fc.tuple(input, fc.array(edit, { minLength: 1, maxLength: 8 })).map(([bytes, edits]) =>
    edits.reduce((result, { position, length, replacement }) => {
      const start = position % (result.length + 1);
      const replaced = result.subarray(start, start + length);
      const piece = replacement === 'twice' ? Buffer.concat([replaced, replaced]) : replacement;
      return Buffer.concat([result.subarray(0, start), piece, result.subarray(start + replaced.length)]);
    }, bytes),
  );
}

const orderId = fc.nat().map((number) => `fuzz-${number}`);
const body = mutated(orderId.map((order_id) => Buffer.from(JSON.stringify(validOrderInput({ order_id })))));
const message = orderId.map((id) => Buffer.from(orderData(id)));
const framed = (data: fc.Arbitrary<Buffer>) => data.map((bytes) => lengthPrefixed(bytes));
/** A frame whose message is mutated, a frame that is mutated anywhere, or both. */
const messageFrame = fc.oneof(framed(mutated(message)), mutated(framed(message)), mutated(framed(mutated(message))));

const input = fc.oneof(
  body.map((bytes) => ({ kind: 'body' as const, bytes })),
  messageFrame.map((bytes) => ({ kind: 'frame' as const, bytes })),
);

/**
 * Responses that show a bug in the gateway. The gRPC statuses are UNKNOWN, DATA_LOSS, and INTERNAL with details. gRPC
 * libraries return INTERNAL without details for a message that can't be decoded.
 */
const bugs = /^(http 5|no response|grpc (2|15|13 with details)$)/;

/**
 * Sends mutated bodies and messages, and returns the distinct responses. Fails if an input gets no response or an
 * internal error, and reports the seed.
 */
export async function fuzz(target: FuzzTarget, count: number, seed?: number): Promise<Set<string>> {
  const responses = new Set<string>();
  let session = openSession(target.grpcPort);
  const send = async ({ kind, bytes }: { kind: 'body' | 'frame'; bytes: Buffer }) => {
    const response = await (kind === 'body' ? sendBody(target, bytes) : sendFrame(target, session, bytes));
    responses.add(response);
    expect(response).not.toMatch(bugs);
  };
  const inputs = fc.array(input, { minLength: concurrency, maxLength: concurrency });
  const sending = fc.asyncProperty(inputs, async (all) => {
    if (session.closed || session.destroyed) session = openSession(target.grpcPort);
    await Promise.all(all.map(send));
  });
  try {
    await fc.assert(sending, { numRuns: Math.ceil(count / concurrency), ...(seed !== undefined && { seed }) });
  } finally {
    session.destroy();
  }
  return responses;
}

async function sendBody(target: FuzzTarget, bytes: Uint8Array): Promise<string> {
  try {
    const response = await postOrder(target, bytes);
    await response.arrayBuffer();
    return `http ${response.status}`;
  } catch (error) {
    return `no response: ${error}`;
  }
}

async function sendFrame({ credentials }: FuzzTarget, session: ClientHttp2Session, bytes: Uint8Array): Promise<string> {
  const headers = { ...callHeaders, ...credentialHeaders(credentials) };
  const { trailers, closed } = await sendCall(session, { headers, chunks: [bytes], ends: true });
  const { 'grpc-status': status, 'grpc-status-details-bin': details } = trailers;
  if (status !== undefined) return `grpc ${status}${status === '13' && details !== undefined ? ' with details' : ''}`;
  return closed === 0 || closed === 'open' ? 'no response: closed' : `reset ${closed}`;
}
