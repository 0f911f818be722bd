import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { parseTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  OrderService,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { OrderInput } from '@gateway/domain/parse-order';
import { success } from '@gateway/domain/result';
import type { KeptOrder } from '../create-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs } from '../limits.ts';
import { orderAnswer } from '../order-answer.ts';
import { encodeEnvelope } from './lane-envelopes.ts';
import { MessageReading } from './lane-message.ts';
import {
  admitCall,
  answerCreateOrder,
  type Call,
  completeRefusal,
  faulted,
  logCall,
  openCall,
  refused,
} from './order-call.ts';
import { answerMessage } from './order-message.ts';
import { orderInputOf } from './order-service.ts';
import { readOrderInput, writeOrderAnswer } from './order-wire.ts';

const createOrderPath = `/${OrderService.typeName}/${OrderService.method.createOrder.name}`;

/** How long a caller that was answered early may go on sending; closing at once would take the answer back from some. */
const lingerMs = 1_000;

const okTrailers = { 'grpc-status': '0' };

/**
 * Where a stream keeps its call; listeners are shared and find it here. Node.js holds a closed stream with its listeners in
 * memory until the next full collection, so whatever hangs on one is let go when it closes (decision 014).
 */
const laneCall = Symbol('lane call');

interface LaneStream extends ServerHttp2Stream {
  [laneCall]?: LaneCall | undefined;
}

interface LaneCall {
  readonly deps: GatewayDeps;
  readonly call: Call;
  /** Whether the caller's time is over before the gateway's own. */
  readonly isCallers: boolean;
  readonly deadline: NodeJS.Timeout;
  reading: MessageReading<OrderInput> | undefined;
  trailers: OutgoingHttpHeaders | undefined;
}

/**
 * Whether a call is one that the lane answers: CreateOrder as an ordinary gRPC client sends it. Anything less ordinary, a query
 * in the path or a parameter of the media type included, is Connect's.
 */
export function isLaneCall(headers: IncomingHttpHeaders): boolean {
  const encoding = headers['grpc-encoding'];
  const mediaType = headers['content-type'];
  return (
    headers[':path'] === createOrderPath &&
    headers[':method'] === 'POST' &&
    (mediaType === 'application/grpc' || mediaType === 'application/grpc+proto') &&
    (encoding === undefined || encoding === 'identity')
  );
}

/**
 * Answers a call straight on its stream, as Connect's gRPC handler would, without its pipeline of generators and signals: six
 * times as many calls a second. What it answers is held against Connect's handler by `test/grpc-lane-and-connect.test.ts`.
 */
export async function serveLaneCall(
  deps: GatewayDeps,
  stream: LaneStream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const call = openCall(deps, 'grpc', single(headers['x-request-id']));
  const { timeoutMs, error: timeoutError } = parseTimeout(
    single(headers['grpc-timeout']) ?? null,
    Number.MAX_SAFE_INTEGER,
  );
  const isCallers = timeoutMs !== undefined && timeoutMs < callTimeoutMs;
  const endsAt = call.startedAt + (isCallers ? timeoutMs : callTimeoutMs);
  const deadline = setTimeout(endAtDeadline, Math.max(0, endsAt - performance.now()), stream);
  const lane: LaneCall = { deps, call, isCallers, deadline, reading: undefined, trailers: undefined };
  stream[laneCall] = lane;
  stream.on('close', onClose);
  try {
    const credentials = {
      clientId: single(headers['x-client-id']),
      clientSecret: single(headers['x-client-secret']),
    };
    await admitCall(deps, call, credentials, endsAt - performance.now());
    if (timeoutError !== undefined) throw timeoutError;
    lane.reading = new MessageReading(decodeOrderInput);
    stream.on('data', onData);
    stream.on('end', onEnd);
    const input = success(await lane.reading.message());
    succeed(stream, lane, await answerCreateOrder(deps, call, input, endsAt - performance.now()));
  } catch (error) {
    refuse(stream, call, error instanceof ConnectError ? error : faulted(deps, call, error));
  }
}

function onClose(this: LaneStream): void {
  const lane = this[laneCall];
  if (lane === undefined) return;
  this[laneCall] = undefined;
  clearTimeout(lane.deadline);
  logCall(lane.deps.log, lane.call);
  // Only where both sides ended in order has Node.js nothing left to do with a stream that is closed.
  if (this.readableEnded && this.writableFinished && this.rstCode === constants.NGHTTP2_NO_ERROR) {
    setImmediate(emptyStream, this);
  }
}

/** The keys under which a closed stream holds objects, Node.js's and ours: the same for all, as one class makes them. */
let heldKeys: readonly PropertyKey[] | undefined;

/** Takes from a closed stream all that it holds: its states, its headers, its listeners. */
function emptyStream(stream: LaneStream): void {
  heldKeys ??= Reflect.ownKeys(stream).filter((key) => typeof Reflect.get(stream, key) === 'object');
  for (const key of heldKeys) Reflect.set(stream, key, undefined);
}

function onData(this: LaneStream, chunk: Buffer): void {
  if (this[laneCall]?.reading?.take(chunk) === 'refused') this.pause();
}

function onEnd(this: LaneStream): void {
  this[laneCall]?.reading?.finish();
}

/** Node.js joins repeated headers or takes the first; only set-cookie stays a list. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function decodeOrderInput(data: Buffer): OrderInput {
  return readOrderInput(data) ?? orderInputOf(fromBinary(CreateOrderRequestSchema, data));
}

function succeed(stream: LaneStream, { deps, call }: LaneCall, { order, replayed }: KeptOrder): void {
  const headers = headersOf(call);
  if (replayed) headers.push('idempotent-replayed', 'true');
  const answer = orderAnswer(order, deps.baseUrl());
  const data =
    writeOrderAnswer(answer) ??
    toBinary(CreateOrderResponseSchema, create(CreateOrderResponseSchema, answerMessage(answer)));
  write(stream, headers, okTrailers, encodeEnvelope(data));
}

function refuse(stream: LaneStream, call: Call, error: ConnectError): void {
  completeRefusal(call, error);
  const trailers = Object.fromEntries(setTrailerStatus(new Headers(), error));
  write(stream, headersOf(call), { ...trailers, 'grpc-message': percentEncoded(error.rawMessage) });
}

/**
 * What the protocol wants encoded and nothing else (github.com/grpc/grpc, PROTOCOL-HTTP2, Percent-Encoded): grpc-js, for one, does
 * not decode the `:` and `/` that Connect encodes too. A header value neither begins nor ends with a blank (RFC 9113, 8.2.1).
 */
function percentEncoded(message: string): string {
  return message.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]|^ | $/gu, encodeURIComponent);
}

/** Names and values in turn: the form that Node.js need not copy. */
function headersOf({ requestId }: Call): string[] {
  return [':status', '200', 'content-type', 'application/grpc+proto', 'x-request-id', requestId];
}

/** Answers a call whose time is over. A connection on which a message did not even come in our own time is ended. */
function endAtDeadline(stream: LaneStream): void {
  const lane = stream[laneCall];
  if (lane === undefined) return;
  const { call, isCallers } = lane;
  const trickles = !isCallers && call.caller !== undefined && !stream.readableEnded;
  if (call.code === 'cancelled') refuse(stream, call, refused(call, { kind: 'deadline_exceeded' }));
  if (trickles) stream.session?.close();
}

/** Writes the one answer of a stream; a second one, or one to a caller that is gone, is dropped. */
function write(stream: LaneStream, headers: string[], trailers: OutgoingHttpHeaders, body?: Buffer) {
  const lane = stream[laneCall];
  if (lane === undefined || stream.headersSent || stream.destroyed || stream.closed) return;
  lane.trailers = trailers;
  stream.on('wantTrailers', onWantTrailers);
  stream.respond(headers, { waitForTrailers: true });
  stream.end(body);
}

function onWantTrailers(this: LaneStream): void {
  const trailers = this[laneCall]?.trailers;
  if (trailers === undefined || this.destroyed || this.closed) return;
  this.sendTrailers(trailers);
  if (!this.readableEnded) letGo(this);
}

/** Throws away what the caller still sends: the answer does not depend on it (RFC 9113, 8.1). */
function letGo(stream: ServerHttp2Stream): void {
  stream.resume();
  const linger = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMs);
  stream.once('close', () => clearTimeout(linger));
}
