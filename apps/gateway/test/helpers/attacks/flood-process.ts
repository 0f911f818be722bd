import { connect, type Socket } from 'node:net';
import { type Credentials, createClientId, createClientSecret } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import {
  clientPreface,
  dataFrame,
  flags as frameFlags,
  frameReader,
  frameTypes,
  hpackField,
  http2Frame,
  pingFrame,
  resetFrame,
  streamsOf,
} from '../../../../../tools/http2-frames.ts';
import { createRandomBytes } from '../../../src/runtime/secrets/random-bytes.ts';
import { callHeaders, createOrderPath } from '../grpc/grpc-call.ts';
import { headersFrame, requestFields } from '../grpc/raw-client.ts';
import { credentialHeaders } from '../send-order.ts';

// Floods a gateway until the parent process ends this one. Most connections send their next request when the previous
// response arrives. Each connection is reopened when it closes. The process responds to every message from its parent
// with a report.
// Usage: `node flood-process.ts OPTIONS_AS_JSON`

/** Requests with 15 KB of headers and a body of 64 KB. An incomplete body lacks its last byte or chunk. */
type HttpBodies = 'bodies' | 'incomplete bodies' | 'chunked bodies' | 'incomplete chunked bodies';

/** As many streams as allowed, none of which ends. Each carries 65 KB of data, or only 15 KB of metadata. */
type GrpcStreams = 'incomplete messages' | 'metadata';

/**
 * Connections that close once the gateway has read all frames: 480 streams, each of which is reset immediately, or a
 * message in one-byte frames.
 */
type CheapFrames = 'resets' | 'tiny frames';

export interface FloodOptions {
  readonly kind: 'pages' | 'unauthenticated' | 'idle' | HttpBodies | GrpcStreams | CheapFrames;
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly connections: number;
  /** The token of the payment page to request. */
  readonly orderToken: string;
  /** If absent, each call has different, invented credentials. */
  readonly credentials?: Credentials | undefined;
}

export interface FloodReport {
  /** The number of connections opened so far. */
  readonly opened: number;
  readonly requests: number;
  /** The number of HTTP responses by status, and of resets on the gRPC port by error code, such as `reset 8`. */
  readonly statuses: Readonly<Record<string, number>>;
}

const options = JSON.parse(process.argv[2] ?? '{}') as FloodOptions;
const randomBytes = createRandomBytes();
const statuses: Record<string, number> = {};
let opened = 0;
let requests = 0;

const pageRequest = `GET /payment/${options.orderToken} HTTP/1.1\r\nhost: x\r\n\r\n`;
const postHead = 'POST /order HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
const bodyBytes = 65_000;
const padding = 'x'.repeat(15_000);

/** Returns headers with the given credentials, or with newly invented, well-formed ones. */
function credentialsOf({ credentials }: FloodOptions): Record<string, string> {
  const invented = () => ({ clientId: createClientId(randomBytes), clientSecret: createClientSecret(randomBytes) });
  return credentialHeaders(credentials ?? invented());
}

/** An order that is invalid only because its note is too long. */
const body = JSON.stringify(validOrderInput({ order_note: 'x'.repeat(bodyBytes - 1_000) }));
const chunkBytes = 1_000;
const chunk = `${chunkBytes.toString(16)}\r\n${' '.repeat(chunkBytes)}\r\n`;
const bodies: Partial<Record<FloodOptions['kind'], string>> = {
  bodies: `content-length: ${body.length}\r\n\r\n${body}`,
  'incomplete bodies': `content-length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
  'chunked bodies': `transfer-encoding: chunked\r\n\r\n${chunk.repeat(64)}0\r\n\r\n`,
  'incomplete chunked bodies': `transfer-encoding: chunked\r\n\r\n${chunk.repeat(64)}`,
};

function httpRequest(): string {
  if (options.kind === 'pages') return pageRequest;
  const fields = options.kind === 'idle' ? {} : credentialsOf(options);
  const large = bodies[options.kind];
  const allFields = large === undefined ? fields : { ...fields, 'x-padding': padding };
  const lines = Object.entries(allFields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${postHead}${lines.join('')}${large ?? 'content-length: 2\r\n\r\n{}'}`;
}

const isIncomplete = options.kind === 'idle' || options.kind.startsWith('incomplete');

function callFrame(streamId: number, metadata: Record<string, string> = {}): Buffer {
  const fields = { ...requestFields, ...callHeaders, ':path': createOrderPath, ...credentialsOf(options), ...metadata };
  return headersFrame(streamId, fields, options.kind === 'unauthenticated' || options.kind === 'idle' ? 1 : 0);
}

/** Opens a connection, and replaces it whenever it closes. */
function keepConnected(port: number, use: (socket: Socket) => void): void {
  const socket = connect(port, '127.0.0.1', () => {
    opened += 1;
    use(socket);
  });
  socket.on('error', () => {});
  socket.once('close', () => setTimeout(keepConnected, options.kind === 'idle' ? 5_000 : 10, port, use));
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
    if (!isIncomplete) send();
  });
  send();
}

/** Sends another call each time data arrives, because nearly every frame is part of a response. */
function useGrpc(socket: Socket): void {
  let streamId = 1;
  const send = () => {
    requests += 1;
    socket.write(callFrame(streamId));
    streamId += 2;
  };
  socket.write(clientPreface);
  socket.on('data', () => {
    if (options.kind !== 'idle') send();
  });
  send();
}

/**
 * Opens as many streams as the first SETTINGS frame allows, without acknowledging that frame, and replaces each stream
 * that the gateway resets. Sends as much data as flow control permits, and never ends a stream.
 */
function useStreams(socket: Socket): void {
  let streamId = 1;
  let window = 65_535;
  const unsent: [streamId: number, bytes: number][] = [];
  const padded: Record<string, string> = options.kind === 'metadata' ? { 'x-padding': padding } : {};
  const openStream = () => {
    requests += 1;
    socket.write(callFrame(streamId, padded));
    if (options.kind === 'incomplete messages') unsent.push([streamId, bodyBytes]);
    streamId += 2;
  };
  const send = () => {
    for (let next = unsent[0]; next !== undefined; next = unsent[0]) {
      const bytes = Math.min(next[1], window, 16_384);
      if (bytes === 0) return;
      // The data is zeros: every five of them are the prefix of an empty message.
      socket.write(dataFrame(next[0], Buffer.alloc(bytes), 0));
      window -= bytes;
      next[1] -= bytes;
      if (next[1] === 0) unsent.shift();
    }
  };
  const read = frameReader(({ type, flags: frameFlagsSet, streamId: frameStreamId, payload }) => {
    if (type === frameTypes.settings && frameFlagsSet === 0 && streamId === 1) {
      for (let count = maxConcurrentStreams(payload); count > 0; count -= 1) openStream();
    }
    if (type === frameTypes.windowUpdate && frameStreamId === 0) window += payload.readUInt32BE();
    if (type === frameTypes.reset) {
      const index = unsent.findIndex(([id]) => id === frameStreamId);
      if (index >= 0) unsent.splice(index, 1);
      const code = payload.readUInt32BE();
      statuses[`reset ${code}`] = (statuses[`reset ${code}`] ?? 0) + 1;
      openStream();
    }
    send();
  });
  socket.on('data', read);
  socket.write(clientPreface);
}

const cheapFrames: Partial<Record<FloodOptions['kind'], () => Buffer>> = {
  // HPACK: the first header block adds its fields to the dynamic table, and later blocks refer to them.
  resets: () => {
    const fields = Object.entries(requestFields);
    const firstBlock = Buffer.concat(fields.map(([name, value]) => hpackField(name, value, true)));
    const laterBlock = Buffer.from(fields.map((_, index) => 0x80 | (61 + fields.length - index)));
    const block = (id: number) =>
      http2Frame(frameTypes.headers, frameFlags.endHeaders, id, id === 1 ? firstBlock : laterBlock);
    return streamsOf(480, (id) => [block(id), resetFrame(id)]);
  },
  'tiny frames': () =>
    Buffer.concat([headersFrame(1, requestFields, 0), ...Array(60_000).fill(dataFrame(1, Buffer.alloc(1), 0))]),
};
const cheap = cheapFrames[options.kind]?.();

function sendCheapFrames(socket: Socket): void {
  requests += 1;
  socket.on(
    'data',
    frameReader(({ type, flags: frameFlagsSet }) => {
      if (type === frameTypes.ping && frameFlagsSet === frameFlags.ack) socket.destroy();
    }),
  );
  socket.write(Buffer.concat([clientPreface, cheap ?? Buffer.alloc(0), pingFrame()]));
}

/** Returns the value of SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113, 6.5.2), or 0 if it is absent. */
function maxConcurrentStreams(settings: Buffer): number {
  for (let offset = 0; offset < settings.length; offset += 6)
    if (settings.readUInt16BE(offset) === 3) return settings.readUInt32BE(offset + 2);
  return 0;
}

for (let index = 0; index < options.connections; index += 1) {
  // One per millisecond, because a flood of new connections is a separate test.
  setTimeout(() => {
    if (cheap !== undefined) keepConnected(options.grpcPort, sendCheapFrames);
    else if (options.kind === 'incomplete messages' || options.kind === 'metadata')
      keepConnected(options.grpcPort, useStreams);
    else if (options.kind in bodies || options.kind === 'pages' || index % 2 === 0)
      keepConnected(options.httpPort, useHttp);
    else keepConnected(options.grpcPort, useGrpc);
  }, index);
}

process.on('message', () => process.send?.({ opened, requests, statuses } satisfies FloodReport));
process.once('disconnect', () => process.exit());
