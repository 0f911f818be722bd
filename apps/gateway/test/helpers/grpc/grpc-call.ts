import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { credentials } from '../fixed-deps.ts';
import { credentialHeaders, orderMessage } from '../send-order.ts';
import { grpcTls } from './grpc-tls.ts';

/** A gRPC call as bytes, so that a test can send what client libraries don't. */
export interface RawCall {
  readonly headers: OutgoingHttpHeaders;
  /** The chunks to write, in this order. */
  readonly chunks: readonly Uint8Array[];
  /** Whether the body ends with the last chunk. */
  readonly ends: boolean;
  /** Cancels the call right after the last chunk. */
  readonly cancels?: boolean;
}

export interface RawResponse {
  readonly headers: Readonly<Record<string, unknown>>;
  /** The trailers. If there are none, the headers whose names begin with `grpc-`. */
  readonly trailers: Readonly<Record<string, unknown>>;
  /** The body in hexadecimal. */
  readonly body: string;
  /** The error code with which the stream was closed (RFC 9113, 7), or `open` if it did not close in time. */
  readonly closed: number | 'open';
}

/** A call that takes this long has hung, even on a busy machine: the server's time limit is 5 s. */
const waitMs = 120_000;

/** The path of the method that creates an order, in gRPC, gRPC-Web and Connect. */
export const createOrderPath = '/gateway.v1.OrderService/CreateOrder';

/** The headers of a call with the credentials of the only account in `fixedDeps`. */
export const callHeaders = { 'content-type': 'application/grpc', ...credentialHeaders(credentials) };

/** Returns a message with its prefix: the flags and the announced length. */
export function lengthPrefixed(data: Uint8Array, { flags = 0, length = data.length } = {}): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flags;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, data]);
}

/** Returns a valid order as the data of a message. */
export function orderData(orderId: string): Uint8Array {
  return toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, orderMessage(orderId)));
}

/** Returns a call that creates an order. */
export function ordinaryCall(orderId: string): RawCall {
  return { headers: callHeaders, chunks: [lengthPrefixed(orderData(orderId))], ends: true };
}

/** Connects over HTTP/2. Ignores errors of the connection, because the results of its calls show them. */
export function openSession(port: number): ClientHttp2Session {
  const session = grpcTls
    ? connect(`https://127.0.0.1:${port}`, { ca: grpcTls.ca })
    : connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  return session;
}

/** Sends a call and returns its response. Resolves even if the call fails. */
export function sendCall(
  session: ClientHttp2Session,
  { headers, chunks, ends, cancels }: RawCall,
): Promise<RawResponse> {
  return new Promise((resolve) => {
    const stream = session.request({ ':method': 'POST', ':path': createOrderPath, ...headers }, { endStream: false });
    const metadata = { headers: {}, trailers: {} };
    const body: Uint8Array[] = [];
    const finish = (closed: number | 'open') => {
      clearTimeout(timer);
      resolve({ ...metadata, closed, body: Buffer.concat(body).toString('hex') });
    };
    const timer = setTimeout(() => finish('open'), waitMs);
    stream.on('response', (received) => {
      // An error sent before the body is read has no trailers: the status is in the headers.
      const { status = [], header = [] } = Object.groupBy(Object.entries(received), ([name]) =>
        name.startsWith('grpc-') ? 'status' : 'header',
      );
      metadata.headers = Object.fromEntries(header);
      metadata.trailers = Object.fromEntries(status);
    });
    stream.on('trailers', (received) => {
      metadata.trailers = Object.fromEntries(Object.entries(received));
    });
    stream.on('data', (chunk: Uint8Array) => body.push(chunk));
    // A server may respond and close a stream before the request is complete.
    stream.on('end', () => {
      // Node.js emits the trailers after the end.
      setImmediate(() => stream.writableEnded || stream.close(constants.NGHTTP2_NO_ERROR));
    });
    stream.on('error', () => {});
    stream.on('close', () => finish(stream.rstCode ?? 0));
    for (const chunk of chunks) stream.write(chunk);
    if (ends) stream.end();
    if (cancels) stream.close(constants.NGHTTP2_CANCEL);
  });
}
