import { connect, type Socket } from 'node:net';
import {
  ack,
  endHeaders,
  endStream,
  frame,
  frameHeadBytes,
  frameTypes,
  preface,
  settingsFrame,
  windowUpdateFrame,
} from './http2-frames.ts';

export interface GrpcConnectionOptions {
  readonly port: number;
  readonly headers: Uint8Array;
  /** The next call's message in its gRPC frame. */
  readonly nextMessage: () => Uint8Array;
  /** Told for every answer: the trailers as they came over the wire, and how long it took. */
  readonly onAnswer: (trailers: Buffer, latencyMs: number) => void;
  readonly onBroken: (reason: string) => void;
}

export interface GrpcConnection {
  /** Sends calls; they leave together at the end of the event loop's turn. */
  send(count: number): void;
  close(): void;
}

const largestWindow = 0x7fff_ffff;
const defaultWindow = 65_535;

/**
 * Sends gRPC calls over one HTTP/2 connection written by hand: what it does not need for that it leaves out, so that the server
 * and not the sender is what is measured. The server is asked to keep no header table, so that equal trailers have equal bytes.
 */
export function openGrpcConnection(options: GrpcConnectionOptions): GrpcConnection {
  const { port, headers, nextMessage, onAnswer, onBroken } = options;
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const sentAt = new Map<number, number>();
  let streamId = 1;
  let window = defaultWindow;
  let waiting = 0;
  let received = 0;
  let rest: Buffer = Buffer.alloc(0);
  let isDue = false;

  const flush = () => {
    isDue = false;
    const pieces: Uint8Array[] = [];
    while (waiting > 0) {
      const message = nextMessage();
      if (window < message.length) break;
      window -= message.length;
      waiting -= 1;
      pieces.push(
        frame(frameTypes.headers, endHeaders, streamId, headers),
        frame(frameTypes.data, endStream, streamId, message),
      );
      sentAt.set(streamId, performance.now());
      streamId += 2;
    }
    if (pieces.length > 0) socket.write(Buffer.concat(pieces));
  };
  const flushSoon = () => {
    if (!isDue) setImmediate(flush);
    isDue = true;
  };

  const take = (type: number, flags: number, id: number, payload: Buffer) => {
    if (type === frameTypes.headers && (flags & endStream) !== 0) {
      const start = sentAt.get(id) ?? 0;
      sentAt.delete(id);
      onAnswer(payload, performance.now() - start);
    } else if (type === frameTypes.data) received += payload.length;
    else if (type === frameTypes.windowUpdate && id === 0) {
      window += payload.readUInt32BE(0);
      if (waiting > 0) flushSoon();
    } else if (type === frameTypes.settings && flags !== ack)
      socket.write(frame(frameTypes.settings, ack, 0, Buffer.alloc(0)));
    else if (type === frameTypes.ping && flags !== ack) socket.write(frame(frameTypes.ping, ack, 0, payload));
    else if (type === frameTypes.goAway || type === frameTypes.resetStream)
      onBroken(`frame ${type}: ${payload.toString('hex')}`);
  };

  socket.on('data', (chunk) => {
    if (typeof chunk === 'string') return;
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let offset = 0;
    while (bytes.length - offset >= frameHeadBytes) {
      const end = offset + frameHeadBytes + bytes.readUIntBE(offset, 3);
      if (end > bytes.length) break;
      take(
        bytes[offset + 3] ?? 0,
        bytes[offset + 4] ?? 0,
        bytes.readUInt32BE(offset + 5),
        bytes.subarray(offset + frameHeadBytes, end),
      );
      offset = end;
    }
    rest = bytes.subarray(offset);
    if (received > largestWindow / 4) {
      socket.write(windowUpdateFrame(received));
      received = 0;
    }
  });
  socket.on('error', (error) => onBroken(error.message));
  // 1: no header table; 2: no push; 4: the window of a stream.
  socket.write(
    Buffer.concat([
      preface,
      settingsFrame({ 1: 0, 2: 0, 4: largestWindow }),
      windowUpdateFrame(largestWindow - defaultWindow),
    ]),
  );

  return {
    send(count) {
      waiting += count;
      flushSoon();
    },
    close: () => socket.destroy(),
  };
}
