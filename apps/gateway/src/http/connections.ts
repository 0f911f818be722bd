import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { Failure } from '@gateway/domain/failure';
import { Call } from '../call.ts';
import { createConnectionLimit, nobody, type Peer } from '../connection-limit.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import * as limits from '../limits.ts';
import { remoteAddressOf } from '../remote-address.ts';
import { problemOf } from './problem.ts';

/** What Node.js's own errors stand for (nodejs.org, "Errors"); any other one is no HTTP. */
const failureOfCode: Readonly<Record<string, Failure>> = {
  HPE_HEADER_OVERFLOW: { kind: 'body_too_large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { kind: 'body_too_large' },
  ERR_HTTP_REQUEST_TIMEOUT: { kind: 'request_timeout' },
};

const malformed: Failure = { kind: 'malformed_json', reason: 'This is not a well-formed HTTP/1.1 request.' };

interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Ends the use of the connection by the request, once it is complete. */
  endUse: () => void;
}

/** Bounds the connections of a server, and tracks which responses are pending on each. */
export function watchConnections(
  server: Server,
  deps: GatewayDeps,
  { connectionsMax = limits.connectionsMax }: { readonly connectionsMax?: number } = {},
) {
  const pending = new Map<Socket, PendingRequest[]>();
  const limit = createConnectionLimit<Socket>({ connectionsMax, close: (socket) => socket.destroy() });
  /** What runs once the requests before an error have their responses. */
  const waiting = new Map<Socket, () => void>();
  let isClosing = false;

  // The socket of a request is the one above TLS.
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    limit.opened(socket, socket.remoteAddress);
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
    if (!pending.has(socket)) socket.setTimeout(limits.responseTakenTimeoutMs);
    const requests = pending.get(socket) ?? [];
    pending.set(socket, requests);
    const pendingRequest: PendingRequest = { request, response, endUse() {} };
    if (requests.push(pendingRequest) > limits.pipelinedRequestsMax) socket.destroy();
    const begin = () => {
      pendingRequest.endUse = limit.began(socket);
    };
    // A request that only trickles must not reserve its connection.
    if (hasBody(request.headers)) request.once('end', begin);
    else begin();
    response.once('close', () => {
      request.off('end', begin);
      pendingRequest.endUse();
      requests.splice(requests.indexOf(pendingRequest), 1);
      const respond = waiting.get(socket);
      if (respond !== undefined && !isResponsePending(socket)) respond();
    });
  });

  /** A request whose body can't be read to its end gets no response of its own. */
  const isResponsePending = (socket: Socket) => pending.get(socket)?.some(({ request }) => request.complete);

  const respond = (error: Error & { code?: string }, socket: Socket) => {
    const call = new Call(deps, 'json', {}, { ...nobody, address: socket.remoteAddress });
    const failure = call.fail(failureOfCode[error.code ?? ''] ?? malformed);
    const { status, headers, body } = problemOf(failure, call.requestId, deps.baseUrl());
    const fields = { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    call.end({ isAnswered: true, status });
  };

  return {
    /** What a call knows of its connection. */
    peerOf: (request: IncomingMessage): Peer => ({
      address: remoteAddressOf(request, deps.trustProxy),
      known: () => limit.known(request.socket),
      waits: () =>
        pending
          .get(request.socket)
          ?.find((one) => one.request === request)
          ?.endUse(),
    }),
    /** Responds to what is no complete HTTP request, after the responses to the requests before it. */
    handleClientError(error: Error & { code?: string }, socket: Socket): void {
      // A connection that sent nothing is closed by its own timeout, without a response to a request that never was.
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
      else if (isResponsePending(socket)) waiting.set(socket, () => socket.writable && respond(error, socket));
      else respond(error, socket);
    },
    /** From now on each response says that its connection closes. */
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
