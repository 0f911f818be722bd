import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import {
  dataFrame,
  type Fields,
  flags,
  frameReader,
  frameTypes,
  headerBlock,
  http2Frame,
  type ReceivedFrame,
  uint32,
} from '../../../../../tools/http2-frames.ts';
import { callHeaders, createOrderPath, lengthPrefixed, orderData } from './grpc-call.ts';
import { grpcTls } from './grpc-tls.ts';

// Creates the HTTP/2 frames of gRPC calls, and a client that sends them as bytes.

export const requestFields: Fields = {
  ':method': 'POST',
  ':scheme': 'http',
  ':path': createOrderPath,
  ':authority': 'localhost',
  'content-type': 'application/grpc',
  te: 'trailers',
};

export function headersFrame(streamId: number, fields: Fields = requestFields, flag = flags.endStream): Buffer {
  return http2Frame(frameTypes.headers, flag | flags.endHeaders, streamId, headerBlock(fields));
}

/** Returns the HEADERS frame of a request whose body follows. */
export const beginFrame = (streamId: number) => headersFrame(streamId, requestFields, 0);

export const callFields: Fields = { ...requestFields, ...callHeaders };

/** Returns the frames of a call that creates an order. */
export function callFrames(streamId: number, orderId: string): Buffer {
  return Buffer.concat([
    headersFrame(streamId, callFields, 0),
    dataFrame(streamId, lengthPrefixed(orderData(orderId))),
  ]);
}

/** Returns a predicate for the frames of this type that belong to this stream. */
export const isFrame = (type: number, streamId: number) => (received: ReceivedFrame) =>
  received.type === type && received.streamId === streamId;

export interface RawClient {
  readonly socket: Socket;
  /** All frames received so far. */
  readonly frames: readonly ReceivedFrame[];
  /** Resolves when the server has closed the connection, or its half of it. */
  readonly closed: Promise<void>;
  /** Resolves with the first frame that satisfies the predicate, or with `undefined` if the connection ends first. */
  firstFrame(predicate: (received: ReceivedFrame) => boolean): Promise<ReceivedFrame | undefined>;
}

/** Opens a connection on which the test writes bytes. It stays open when the server closes its half. */
export async function openRawClient(port: number): Promise<RawClient> {
  const address = { port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true };
  const socket = grpcTls ? connectTls({ ...address, ca: grpcTls.ca, ALPNProtocols: ['h2'] }) : connect(address);
  const frames: ReceivedFrame[] = [];
  const arrivals = new EventTarget();
  let isClosed = false;
  const read = frameReader((received) => frames.push(received));
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => {
    read(bytes);
    arrivals.dispatchEvent(new Event('frames'));
  });
  const closed = new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) {
      socket.once(event, () => {
        isClosed = true;
        arrivals.dispatchEvent(new Event('frames'));
        resolve();
      });
    }
  });
  await Promise.race([once(socket, grpcTls ? 'secureConnect' : 'connect'), closed]);
  return {
    socket,
    frames,
    closed,
    async firstFrame(predicate) {
      while (!isClosed && !frames.some(predicate)) {
        await new Promise((resolve) => arrivals.addEventListener('frames', resolve, { once: true }));
      }
      return frames.find(predicate);
    },
  };
}

/**
 * Waits until the server has read everything written so far. Resolves with `true`, or with `false` if the connection
 * was closed first.
 */
export async function readByServer({ socket, frames, firstFrame }: RawClient): Promise<boolean> {
  const payload = uint32(frames.length);
  socket.write(http2Frame(frameTypes.ping, 0, 0, Buffer.concat([payload, payload])));
  const isAck = (received: ReceivedFrame) =>
    received.type === frameTypes.ping && received.flags === flags.ack && received.payload.indexOf(payload) === 0;
  return (await firstFrame(isAck)) !== undefined;
}

/** Resolves with the value of the promise, or with `undefined` after `timeMs`. */
export function within<Value>(timeMs: number, promise: Promise<Value>): Promise<Value | undefined> {
  return Promise.race([promise, sleep(timeMs, undefined, { ref: false })]);
}
