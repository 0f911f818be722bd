import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from 'node:http2';

/** A gRPC call as bytes: what a well-behaved client would never send can be said too. */
export interface RawCall {
  readonly headers: OutgoingHttpHeaders;
  /** What is written, piece by piece. */
  readonly pieces: readonly Uint8Array[];
  /** Whether the body is ended after the last piece. */
  readonly ends: boolean;
  /** Cancels the call right after what was written. */
  readonly cancels?: boolean;
}

export interface RawAnswer {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** The code that the stream was closed with (RFC 9113, 7), or `open` where nothing came within the wait. */
  readonly closed: number | 'open';
}

/** Long against any answer; a call that takes this long hangs. */
const waitMs = 15_000;

/** Where every protocol of the service but `POST /order` asks for a new order. */
export const createOrderPath = '/gateway.v1.OrderService/CreateOrder';

/** The frame of a message: flags, the length that is told, the bytes. */
export function frame(data: Uint8Array, { flags = 0, length = data.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, data]);
}

/** Connects in HTTP/2 without TLS. What goes wrong on the connection is seen in the calls' answers. */
export function openSession(port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  return session;
}

export function sendCall(session: ClientHttp2Session, { headers, pieces, ends, cancels }: RawCall): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const stream = session.request({ ':method': 'POST', ':path': createOrderPath, ...headers }, { endStream: false });
    const answer = { headers: {}, trailers: {}, body: [] as Uint8Array[] };
    const finish = (closed: number | 'open') => {
      clearTimeout(patience);
      resolve({
        headers: answer.headers,
        trailers: answer.trailers,
        closed,
        body: Buffer.concat(answer.body).toString('hex'),
      });
    };
    const patience = setTimeout(() => finish('open'), waitMs);
    stream.on('response', (received) => {
      answer.headers = received;
    });
    stream.on('trailers', (received) => {
      answer.trailers = received;
    });
    stream.on('data', (chunk: Uint8Array) => answer.body.push(chunk));
    // A server that has answered may close a stream whose request it does not need; the client is then rightly done.
    stream.on('end', () => {
      // Node.js tells the trailers after the end.
      setImmediate(() => stream.writableEnded || stream.close(constants.NGHTTP2_NO_ERROR));
    });
    stream.on('error', () => {});
    stream.on('close', () => finish(stream.rstCode ?? 0));
    for (const piece of pieces) stream.write(piece);
    if (ends) stream.end();
    if (cancels) stream.close(constants.NGHTTP2_CANCEL);
  });
}
