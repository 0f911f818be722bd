import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { parseTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  OrderService,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { success } from '@gateway/domain/result';
import { callTimeoutMs } from '../limits.ts';
import { encodeEnvelope } from './lane-envelopes.ts';
import { readMessage } from './lane-message.ts';
import {
  admitCall,
  answerCreateOrder,
  type Call,
  type CreatedAnswer,
  completeRefusal,
  faulted,
  type GatewayDeps,
  logCall,
  openCall,
  refused,
  timeLeftMs,
} from './order-call.ts';
import { orderInputOf } from './order-service.ts';

const createOrderPath = `/${OrderService.typeName}/${OrderService.method.createOrder.name}`;

/** How long a caller that was answered early may go on sending; closing at once would take the answer back from some. */
const lingerMs = 1_000;

const okTrailers = { 'grpc-status': '0' };

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
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const call = openCall(deps, 'grpc', single(headers['x-request-id']));
  let deadline: NodeJS.Timeout | undefined;
  stream.on('close', () => {
    clearTimeout(deadline);
    logCall(deps.log, call);
  });
  try {
    const timeout = parseTimeout(single(headers['grpc-timeout']) ?? null, Number.MAX_SAFE_INTEGER);
    const callersEnd = timeout.timeoutMs === undefined ? undefined : call.startedAt + timeout.timeoutMs;
    const leftMs = () => timeLeftMs(call, callersEnd === undefined ? undefined : callersEnd - performance.now());
    const isCallers = timeout.timeoutMs !== undefined && timeout.timeoutMs < callTimeoutMs;
    deadline = setTimeout(() => endAtDeadline(stream, call, isCallers), Math.max(0, leftMs()));
    await admitCall(deps, call, {
      clientId: single(headers['x-client-id']),
      clientSecret: single(headers['x-client-secret']),
    });
    if (timeout.error !== undefined) throw timeout.error;
    const request = await readMessage(stream, CreateOrderRequestSchema);
    succeed(stream, call, await answerCreateOrder(deps, call, success(orderInputOf(request)), leftMs()));
  } catch (error) {
    refuse(stream, call, error instanceof ConnectError ? error : faulted(deps, call, error));
  }
}

/** Node.js joins repeated headers or takes the first; only set-cookie stays a list. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function succeed(stream: ServerHttp2Stream, call: Call, { message, replayed }: CreatedAnswer): void {
  const headers = headersOf(call);
  if (replayed) headers.push('idempotent-replayed', 'true');
  const bytes = toBinary(CreateOrderResponseSchema, create(CreateOrderResponseSchema, message));
  write(stream, headers, okTrailers, encodeEnvelope(bytes));
}

function refuse(stream: ServerHttp2Stream, call: Call, error: ConnectError): void {
  completeRefusal(call, error);
  write(stream, headersOf(call), Object.fromEntries(setTrailerStatus(new Headers(), error)));
}

/** Names and values in turn: the form that Node.js need not copy. */
function headersOf({ requestId }: Call): string[] {
  return [':status', '200', 'content-type', 'application/grpc+proto', 'x-request-id', requestId];
}

/** Answers a call whose time is over. A connection on which a message did not even come in our own time is ended. */
function endAtDeadline(stream: ServerHttp2Stream, call: Call, isCallers: boolean): void {
  const trickles = !isCallers && call.caller !== undefined && !stream.readableEnded;
  if (call.code === 'cancelled') refuse(stream, call, refused(call, { kind: 'deadline_exceeded' }));
  if (trickles) stream.session?.close();
}

/** Writes the one answer of a stream; a second one, or one to a caller that is gone, is dropped. */
function write(stream: ServerHttp2Stream, headers: string[], trailers: OutgoingHttpHeaders, body?: Buffer) {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  stream.on('wantTrailers', () => {
    if (stream.destroyed || stream.closed) return;
    stream.sendTrailers(trailers);
    if (!stream.readableEnded) letGo(stream);
  });
  stream.respond(headers, { waitForTrailers: true });
  stream.end(body);
}

/** Throws away what the caller still sends: the answer does not depend on it (RFC 9113, 8.1). */
function letGo(stream: ServerHttp2Stream): void {
  stream.resume();
  const linger = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMs);
  stream.once('close', () => clearTimeout(linger));
}
