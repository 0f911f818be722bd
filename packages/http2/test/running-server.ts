import { createHttp2Server } from '../src/http2-server.ts';
import type { Http2Limits } from '../src/limits.ts';
import type { RequestFields } from '../src/request-fields.ts';
import type { Answer, ServerStream } from '../src/server-stream.ts';

export const limits: Http2Limits = {
  connectionsMax: 100,
  streamsMax: 100,
  streamWindow: 65_536,
  connectionWindow: 1_048_576,
  headerBytesMax: 16_384,
  headerPairsMax: 100,
  headerBlockBytesMax: 65_536,
  resetBurst: 20,
  resetRate: 1,
  resetsPerAnswer: 1,
  quickResetMs: 1_000,
  idleFrameBurst: 200,
  idleFrameRate: 1,
  idleFramesPerStream: 16,
  headersTimeoutMs: 5_000,
  idleTimeoutMs: 60_000,
  requestTimeoutMs: 10_000,
  blockedTimeoutMs: 10_000,
  lingerMs: 200,
  closingTimeoutMs: 2_000,
  drainTimeoutMs: 1_000,
  checkEveryMs: 50,
};

export const hint = 'HTTP/2 only';

interface SeenRequest {
  readonly fields: RequestFields;
  readonly body: Buffer;
}

export interface RunningServer {
  readonly port: number;
  /** Requests that came to their end. */
  readonly requests: SeenRequest[];
  /** The codes with which streams were over. */
  readonly closes: number[];
  readonly faults: unknown[];
  /** Streams that were given to the service. */
  readonly opened: ServerStream[];
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly limits?: Partial<Http2Limits>;
  /** Undefined: not answered. Otherwise at the end of the request. */
  readonly answer?: (request: SeenRequest) => Answer | undefined;
  /** Told at once, before anything of the body. */
  readonly onOpen?: (stream: ServerStream) => void;
  /** Told at the end of every stream. */
  readonly onClose?: (code: number, stream: ServerStream) => void;
}

const plainAnswer: Answer = {
  headers: [':status', '200', 'content-type', 'text/plain'],
  body: Buffer.from('here'),
  trailers: ['grpc-status', '0'],
};

export async function runServer({
  limits: own,
  answer = () => plainAnswer,
  onOpen,
  onClose,
}: ServerOptions = {}): Promise<RunningServer> {
  const requests: SeenRequest[] = [];
  const closes: number[] = [];
  const faults: unknown[] = [];
  const opened: ServerStream[] = [];
  const server = createHttp2Server({
    limits: { ...limits, ...own },
    hint,
    onFault: (error) => faults.push(error),
    onStream: (stream) => {
      const pieces: Buffer[] = [];
      opened.push(stream);
      onOpen?.(stream);
      return {
        onData: (bytes) => {
          pieces.push(Buffer.from(bytes));
          stream.release(bytes.length);
        },
        onEnd: () => {
          const request = { fields: stream.fields, body: Buffer.concat(pieces) };
          requests.push(request);
          const given = answer(request);
          if (given !== undefined) stream.respond(given);
        },
        onClose: (code) => {
          closes.push(code);
          onClose?.(code, stream);
        },
      };
    },
  });
  const port = await server.listen(0, '127.0.0.1');
  return { port, requests, closes, faults, opened, close: () => server.close() };
}
