import { createServer, type ServerHttp2Stream, type Settings } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createHttp2Server } from '../src/http2-server.ts';
import { hint, limits } from './running-server.ts';

/** Few streams, and windows that a sequence can overrun; a client that knows of no settings has 65,535 bytes (RFC 9113, 6.9.2). */
const streamsMax = 3;
const streamWindow = 65_535;
const connectionWindow = 100_000;

/** Of a request to this path nothing is read, and it is not answered. */
const heldPath = '/held';

export interface Peer {
  readonly port: number;
  readonly faults: unknown[];
  close(): Promise<void>;
}

/** Answers every whole request with 200 and a word. */
export async function runOurs(): Promise<Peer> {
  const faults: unknown[] = [];
  const server = createHttp2Server({
    limits: { ...limits, streamsMax, streamWindow, connectionWindow, drainTimeoutMs: 0, connectionsMax: 1_000 },
    hint,
    onFault: (error) => faults.push(error),
    onStream: (stream) => {
      const isHeld = stream.fields.includes(heldPath);
      return {
        onData: (bytes) => {
          if (!isHeld) stream.release(bytes.length);
        },
        onEnd: () => {
          if (!isHeld) stream.respond({ headers: [':status', '200'], body: Buffer.from('here') });
        },
        onClose: () => {},
      };
    },
  });
  return { port: await server.listen(0, '127.0.0.1'), faults, close: () => server.close() };
}

/** The same service on Node.js's server, whose protocol is nghttp2's. */
export async function runNghttp2(): Promise<Peer> {
  const settings: Settings = {
    maxConcurrentStreams: streamsMax,
    initialWindowSize: streamWindow,
    maxHeaderListSize: limits.headerBytesMax,
  };
  const server = createServer({ settings });
  server.on('session', (session) => {
    session.on('error', () => {});
    session.setLocalWindowSize(connectionWindow);
  });
  server.on('sessionError', () => {});
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {});
    if (headers[':path'] === heldPath) return;
    stream.on('end', () => {
      if (stream.writable && !stream.headersSent) stream.respond({ ':status': 200 });
      stream.end('here');
    });
    stream.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    faults: [],
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
