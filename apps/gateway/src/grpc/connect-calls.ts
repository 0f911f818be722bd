import { Code, ConnectError, createConnectRouter } from '@connectrpc/connect';
import type { UniversalHandlerFn, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { errorCodes } from '@gateway/http2/frames';
import { fieldOf, type RequestFields } from '@gateway/http2/request-fields';
import type { Answer, ServerStream, StreamListener } from '@gateway/http2/server-stream';
import type { GatewayDeps } from '../gateway-deps.ts';
import { http2Limits } from '../limits.ts';
import { requestIdOf } from '../request-id.ts';
import { endlessTimeouts } from './endless-timeout.ts';
import { WaitingBytes } from './held-bytes.ts';
import { orderServiceOptions, orderServiceRoutes } from './order-service.ts';
import { inWholeMessages } from './whole-messages.ts';

/** Connect answers it without the header Allow (RFC 9110, 15.5.6); every method of the service takes POST alone. */
const methodNotAllowed = 405;

/** Calls that Connect's own handlers answer, each on its stream. All methods of the service are unary: one answer, as a whole. */
export function createConnectCalls(deps: GatewayDeps): (stream: ServerStream) => StreamListener {
  const acceptCompression = [compressionGzip, compressionBrotli];
  const router = createConnectRouter({ ...orderServiceOptions(deps), acceptCompression });
  orderServiceRoutes(deps)(router);
  const handlers = new Map<string, UniversalHandlerFn>(
    router.handlers.map((handler) => [handler.requestPath, handler]),
  );
  return (stream) => {
    const call = new ConnectCall(stream);
    void call.serve(deps, handlers.get(pathOf(stream.fields)));
    return call;
  };
}

class ConnectCall implements StreamListener {
  readonly #stream: ServerStream;
  readonly #body: StreamBody;
  readonly #gone = new AbortController();

  constructor(stream: ServerStream) {
    this.#stream = stream;
    this.#body = new StreamBody(stream);
  }

  async serve(deps: GatewayDeps, handler: UniversalHandlerFn | undefined): Promise<void> {
    const { fields } = this.#stream;
    // For Connect's own refusals before there is a call; the answer to a call brings the call's.
    const requestId = requestIdOf(fieldOf(fields, 'x-request-id'), deps.randomBytes);
    try {
      const answer = handler === undefined ? notFound(fields) : await handler(this.#request());
      this.#stream.respond(await wholeAnswer(answer, requestId));
    } catch (error) {
      // Connect answers whatever goes wrong in a call; a caller that is gone is told nothing.
      if (!this.#gone.signal.aborted) deps.log.fault('a call failed', error, { request_id: requestId });
      this.#stream.reset(errorCodes.internalError);
    }
  }

  onData(bytes: Buffer): void {
    this.#body.push(bytes);
  }

  onEnd(): void {
    this.#body.end();
  }

  onClose(): void {
    const error = new ConnectError('the caller has gone', Code.Canceled);
    this.#gone.abort(error);
    this.#body.end(error);
  }

  #request() {
    const { fields } = this.#stream;
    return {
      httpVersion: '2.0',
      method: fieldOf(fields, ':method') ?? '',
      // Nobody looks at the host; with the caller's, it might be no URL.
      url: `http://gateway${fieldOf(fields, ':path')}`,
      header: headersOf(fields),
      body: inWholeMessages(this.#body, fieldOf(fields, 'content-type')),
      signal: this.#gone.signal,
    };
  }
}

/** The body of a stream as it is asked for. */
class StreamBody implements AsyncIterable<Uint8Array> {
  readonly #stream: ServerStream;
  readonly #waiting = new WaitingBytes(http2Limits.streamWindow);
  #end: { readonly error: Error | undefined } | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(stream: ServerStream) {
    this.#stream = stream;
  }

  push(bytes: Buffer): void {
    this.#waiting.add(bytes);
    this.#wake.resolve();
  }

  /** Only the first end counts. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, undefined> {
    for (;;) {
      await this.#wake.promise;
      const end = this.#end;
      if (end === undefined) this.#wake = Promise.withResolvers();
      const bytes = this.#waiting.take();
      if (bytes !== undefined) {
        this.#stream.release(bytes.length);
        yield bytes;
      }
      if (this.#end?.error !== undefined) throw this.#end.error;
      // Whatever comes, comes before the end.
      if (end !== undefined) return;
    }
  }
}

/** Clients of gRPC make UNIMPLEMENTED of a bare 404 too, with words about HTTP that tell their users nothing. */
function notFound(fields: RequestFields): UniversalServerResponse {
  const mediaType = fieldOf(fields, 'content-type') ?? '';
  if (!/^application\/grpc(\+|;|$)/i.test(mediaType)) return { status: 404 };
  const error = new ConnectError(`no such method of ${OrderService.typeName}`, Code.Unimplemented);
  return { status: 200, header: setTrailerStatus(new Headers({ 'content-type': mediaType }), error) };
}

function pathOf(fields: RequestFields): string {
  return fieldOf(fields, ':path')?.split('?', 1)[0] ?? '';
}

/** Without the length, for which Connect would make room before a byte has come; the stream is held to it. */
function headersOf(fields: RequestFields): Headers {
  const headers = new Headers();
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (!name.startsWith(':') && name !== 'content-length') headers.append(name, fields[at + 1] ?? '');
  }
  for (const name of endlessTimeouts((name) => headers.get(name))) headers.delete(name);
  return headers;
}

async function wholeAnswer(
  { status, header, body, trailer }: UniversalServerResponse,
  requestId: string,
): Promise<Answer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body ?? []) pieces.push(piece);
  // Read after the body: what makes the body may set them.
  const told = new Headers(header);
  if (!told.has('x-request-id')) told.set('x-request-id', requestId);
  if (status === methodNotAllowed) told.set('allow', 'POST');
  const trailers = trailer === undefined ? [] : [...trailer].flat();
  return {
    headers: [':status', String(status), ...[...told].flat()],
    body: pieces.length === 0 ? undefined : Buffer.concat(pieces),
    trailers: trailers.length === 0 ? undefined : trailers,
  };
}
