import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { Failure } from '@order-gateway/domain/failure';
import { remoteAddressOf, type TrustProxy } from '@order-gateway/runtime/remote-address';
import { createConnectionLimit, noPeer, type Peer } from '../calls/peers/connection-limit.ts';
import * as limits from '../limits.ts';
import { problemOf } from './problem.ts';
import type { HttpDeps } from './requests.ts';

/**
 * The failures by Node.js's error codes (nodejs.org, "Errors"). Any other code, except the one for an unknown method,
 * means that the input is not well-formed HTTP.
 */
const failureOfCode: Readonly<Record<string, Failure>> = {
  HPE_HEADER_OVERFLOW: { kind: 'headers_too_large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { kind: 'body_too_large' },
  ERR_HTTP_REQUEST_TIMEOUT: { kind: 'request_timeout' },
};

const malformed: Failure = { kind: 'malformed_request', reason: 'This is not a well-formed HTTP/1.1 request.' };

/** A parser's error, with the bytes in which it occurred and its position in them. */
type ParserError = Error & { code?: string; readonly rawPacket?: unknown; readonly bytesParsed?: number };

const requestLine = /^[!#$%&'*+\-.^_`|~\w]+ (\/\S*) HTTP\/1\.[01]\r?\n/;

/**
 * Returns the failure for a request with an unknown method. Node.js's parser accepts only a fixed list of methods, and
 * does not report the path of a request with any other.
 */
function unknownMethod(
  { rawPacket, bytesParsed = 0 }: ParserError,
  unroutedFailure: (url: string) => Failure,
): Failure {
  const text = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1') : '';
  const [, url] = requestLine.exec(text.slice(text.lastIndexOf('\n', bytesParsed) + 1)) ?? [];
  return url === undefined ? malformed : unroutedFailure(url);
}

interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Ends the request's use of the connection. Does nothing before the request is complete. */
  endUse: () => void;
}

export interface ConnectionsDeps extends HttpDeps {
  /** Absent: clients connect without a proxy. */
  readonly trustProxy: TrustProxy | undefined;
}

/**
 * Bounds the connections of a server, and tracks which requests on each connection have no response yet.
 * `unroutedFailure` returns the failure of a request with a method that no route of its URL has.
 */
export function watchConnections(
  server: Server,
  deps: ConnectionsDeps,
  unroutedFailure: (url: string) => Failure,
  connectionsMax = limits.connectionsMax,
) {
  const pending = new Map<Socket, PendingRequest[]>();
  const limit = createConnectionLimit<Socket>(connectionsMax, (socket) => socket.destroy());
  /** The responses to errors, each sent once the requests before it have their responses. */
  const waiting = new Map<Socket, () => void>();
  let isClosing = false;

  // The socket of a request is the TLS socket, if there is one.
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    limit.opened(socket);
    socket.setTimeout(limits.unusedTimeoutMs);
    socket.once('close', () => {
      limit.closed(socket);
      pending.delete(socket);
      waiting.delete(socket);
    });
  });

  server.prependListener('request', (request, response) => {
    const { socket } = request;
    if (isClosing) response.setHeader('connection', 'close');
    if (!pending.has(socket)) socket.setTimeout(deps.responseTakenTimeoutMs);
    const requests = pending.get(socket) ?? [];
    pending.set(socket, requests);
    const pendingRequest: PendingRequest = { request, response, endUse() {} };
    if (requests.push(pendingRequest) > limits.pipelinedRequestsMax) socket.destroy();
    const startUse = () => {
      pendingRequest.endUse = limit.use(socket);
    };
    // A request that arrives slowly must not reserve its connection.
    if (hasBody(request.headers)) request.on('end', startUse);
    else startUse();
    response.on('close', () => {
      request.off('end', startUse);
      pendingRequest.endUse();
      requests.splice(requests.indexOf(pendingRequest), 1);
      const respondToError = waiting.get(socket);
      if (respondToError !== undefined && !isResponsePending(socket)) respondToError();
    });
  });

  /**
   * Whether an earlier request still waits for its response. An incomplete request does not count, because it gets
   * none.
   */
  const isResponsePending = (socket: Socket) => pending.get(socket)?.some(({ request }) => request.complete);

  const failureOf = (error: ParserError) =>
    error.code === 'HPE_INVALID_METHOD'
      ? unknownMethod(error, unroutedFailure)
      : (failureOfCode[error.code ?? ''] ?? malformed);

  const respond = (error: ParserError, socket: Socket) => {
    const call = deps.calls.start('json', {}, { ...noPeer, address: socket.remoteAddress });
    const failure = call.fail(failureOf(error));
    const { status, headers, body } = problemOf(failure, call.requestId, deps.baseUrl());
    const fields = { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    call.end({ isAnswered: true, status });
  };

  return {
    /** Returns the peer of a request's call. */
    peerOf: (request: IncomingMessage): Peer => ({
      address: remoteAddressOf(request, deps.trustProxy),
      markAuthenticated: () => limit.markAuthenticated(request.socket),
      markIdle: () =>
        pending
          .get(request.socket)
          ?.find((pendingRequest) => pendingRequest.request === request)
          ?.endUse(),
    }),
    /** Responds to input that is not a complete HTTP request, once the requests before it have their responses. */
    handleClientError(error: ParserError, socket: Socket): void {
      // A connection that sent nothing is closed by its own timeout, without a response, because there was no request.
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
      else if (isResponsePending(socket)) waiting.set(socket, () => socket.writable && respond(error, socket));
      else respond(error, socket);
    },
    /** Adds `connection: close` to every response whose headers have not been sent yet. */
    close(): void {
      isClosing = true;
      for (const { response } of [...pending.values()].flat()) {
        if (!response.headersSent) response.setHeader('connection', 'close');
      }
    },
  };
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return 'transfer-encoding' in headers || (headers['content-length'] ?? '0') !== '0';
}
