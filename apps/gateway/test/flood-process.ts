import { connect, type Socket } from 'node:net';
import { createClientId, createClientSecret } from '@gateway/domain/credentials';
import { createRandomBytes } from '../src/random-bytes.ts';
import { callHeaders, createOrderPath } from './grpc-call.ts';
import { clientPreface, headersFrame, requestFields } from './http2-frames.ts';

// A flood of calls without valid credentials, as `node flood-process.ts OPTIONS_AS_JSON`, until its parent ends it. Each connection
// sends its next request when the response to the last one comes, and is opened again when the gateway closes it. Every message of
// the parent is answered with what came of it so far.

export interface FloodOptions {
  readonly kind: 'pages' | 'unauthenticated' | 'idle';
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly connections: number;
  /** Of the page that is opened. */
  readonly orderToken: string;
}

export interface FloodReport {
  readonly opened: number;
  readonly requests: number;
  /** Responses by status; those of the gRPC port are not read. */
  readonly statuses: Readonly<Record<string, number>>;
}

const options = JSON.parse(process.argv[2] ?? '{}') as FloodOptions;
const randomBytes = createRandomBytes();
const statuses: Record<string, number> = {};
let opened = 0;
let requests = 0;

const pageRequest = `GET /payment/${options.orderToken} HTTP/1.1\r\nhost: x\r\n\r\n`;
const anonymousCall = 'POST /order HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n';

/** Credentials that look right, new ones each time. */
function inventedCredentials(): Record<string, string> {
  return { 'x-client-id': createClientId(randomBytes), 'x-client-secret': createClientSecret(randomBytes) };
}

function httpRequest(): string {
  if (options.kind === 'pages') return pageRequest;
  const fields = options.kind === 'idle' ? {} : inventedCredentials();
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${anonymousCall}${lines.join('')}\r\n{}`;
}

function grpcRequest(streamId: number): Buffer {
  const fields = { ...requestFields, ...callHeaders, ':path': createOrderPath, ...inventedCredentials() };
  return headersFrame(streamId, fields);
}

/** Opens a connection, and another one when it ends. */
function open(port: number, use: (socket: Socket) => void): void {
  const socket = connect(port, '127.0.0.1', () => {
    opened += 1;
    use(socket);
  });
  socket.on('error', () => {});
  socket.once('close', () => setTimeout(open, options.kind === 'idle' ? 5_000 : 10, port, use));
}

function useHttp(socket: Socket): void {
  const send = () => {
    requests += 1;
    socket.write(httpRequest());
  };
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    received += chunk;
    const end = received.indexOf('\r\n\r\n');
    const length = /content-length: (\d+)/i.exec(received.slice(0, end))?.[1];
    if (end === -1 || length === undefined || received.length < end + 4 + Number(length)) return;
    const status = received.slice(9, 12);
    statuses[status] = (statuses[status] ?? 0) + 1;
    received = '';
    if (options.kind !== 'idle') send();
  });
  send();
}

/** Sends a call each time that frames come. Each is an answer, or part of one. */
function useGrpc(socket: Socket): void {
  let streamId = 1;
  const send = () => {
    requests += 1;
    socket.write(grpcRequest(streamId));
    streamId += 2;
  };
  socket.write(clientPreface);
  socket.on('data', () => {
    if (options.kind !== 'idle') send();
  });
  send();
}

for (let index = 0; index < options.connections; index += 1) {
  // Not all at once: a flood of new connections is another one.
  setTimeout(() => {
    if (options.kind === 'pages' || index % 2 === 0) open(options.httpPort, useHttp);
    else open(options.grpcPort, useGrpc);
  }, index);
}

process.on('message', () => process.send?.({ opened, requests, statuses } satisfies FloodReport));
process.once('disconnect', () => process.exit());
