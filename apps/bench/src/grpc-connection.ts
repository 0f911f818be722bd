import { connect, type Socket } from 'node:net';
import { type Frame, FrameReader } from '@gateway/http2/frame-reader';
import {
  defaultWindow,
  flags,
  frame,
  frameTypes,
  largestWindow,
  noBytes,
  preface,
  settingIds,
  settingsFrame,
  windowUpdateFrame,
} from '@gateway/http2/frames';
import { headerBlocks } from './call-headers.ts';

export interface GrpcConnectionOptions {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A message in its gRPC frame; every call's is as long. */
  readonly message: Uint8Array;
  /** Makes the next call's message out of the copy that begins at `offset`. */
  readonly renew: (bytes: Buffer, offset: number) => void;
  /** Told for every answer: the trailers as they came over the wire, and how long it took since it was due. */
  readonly onAnswer: (trailers: Buffer, latencyMs: number) => void;
  readonly onBroken: (reason: string) => void;
}

export interface GrpcConnection {
  /**
   * Sends calls, due now; they leave together, those that follow on answers once all that has come is read, the others at the end
   * of the event loop's turn, or as soon as the server takes them.
   */
  send(count: number): void;
  /** Calls that are under way or wait for their turn. */
  readonly unanswered: number;
  close(): void;
}

/** Where a frame's head names its stream. */
const streamIdPlace = 5;

/** Calls that may be under way on a connection: no server should allow less (RFC 9113, 6.5.2). */
const streamsMax = 100;

/** Calls that may be under way or waiting; a power of two. */
const callsMax = 65_536;

/**
 * Sends gRPC calls over one HTTP/2 connection written by hand: what it does not need for that it leaves out, so that the server
 * and not the sender is what is measured. The server is asked to keep no header table, so that equal trailers have equal bytes.
 */
export function openGrpcConnection(options: GrpcConnectionOptions): GrpcConnection {
  const { port, message, renew, onAnswer, onBroken } = options;
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const headers = headerBlocks(options.headers);
  const data = frame(frameTypes.data, flags.endStream, 0, message);
  const firstCall = Buffer.concat([frame(frameTypes.headers, flags.endHeaders, 0, headers.first), data]);
  const call = Buffer.concat([frame(frameTypes.headers, flags.endHeaders, 0, headers.later), data]);
  const frames = new FrameReader();
  const dueAt = new Float64Array(callsMax);
  let streamId = 1;
  let nextDue = 0;
  let window = defaultWindow;
  let underWay = 0;
  let waiting = 0;
  let received = 0;
  let isDue = false;
  let isReading = false;

  const flush = () => {
    isDue = false;
    const count = Math.min(waiting, Math.floor(window / message.length), streamsMax - underWay);
    if (count <= 0) return;
    const template = streamId === 1 ? firstCall : call;
    // The first call goes out alone: the next ones lean on the table that its headers fill.
    const sent = template === firstCall ? 1 : count;
    const bytes = Buffer.allocUnsafe(sent * template.length);
    for (let offset = 0; offset < bytes.length; offset += template.length) {
      template.copy(bytes, offset);
      bytes.writeUInt32BE(streamId, offset + streamIdPlace);
      bytes.writeUInt32BE(streamId, offset + template.length - data.length + streamIdPlace);
      renew(bytes, offset + template.length - message.length);
      streamId += 2;
    }
    waiting -= sent;
    underWay += sent;
    window -= sent * message.length;
    socket.write(bytes);
    if (sent < count) flushSoon();
  };
  const flushSoon = () => {
    if (!isDue && !isReading) setImmediate(flush);
    isDue = true;
  };

  const take = ({ type, flags: set, streamId: id, payload }: Frame) => {
    if (type === frameTypes.headers && (set & flags.endStream) !== 0) {
      underWay -= 1;
      if (waiting > 0) flushSoon();
      onAnswer(payload, performance.now() - (dueAt[placeOf(id)] ?? 0));
    } else if (type === frameTypes.data) received += payload.length;
    else if (type === frameTypes.windowUpdate && id === 0) {
      window += payload.readUInt32BE(0);
      if (waiting > 0) flushSoon();
    } else if (type === frameTypes.settings && set !== flags.ack)
      socket.write(frame(frameTypes.settings, flags.ack, 0, noBytes));
    else if (type === frameTypes.ping && set !== flags.ack) socket.write(frame(frameTypes.ping, flags.ack, 0, payload));
    else if (type === frameTypes.goAway || type === frameTypes.resetStream)
      onBroken(`frame ${type}: ${payload.toString('hex')}`);
  };

  socket.on('data', (bytes: Buffer) => {
    isReading = true;
    frames.take(bytes, take);
    isReading = false;
    if (isDue) flush();
    if (received > largestWindow / 4) {
      socket.write(windowUpdateFrame(0, received));
      received = 0;
    }
  });
  socket.on('error', (error) => onBroken(error.message));
  socket.write(
    Buffer.concat([
      preface,
      settingsFrame([
        [settingIds.headerTableSize, 0],
        [settingIds.enablePush, 0],
        [settingIds.initialWindowSize, largestWindow],
      ]),
      windowUpdateFrame(0, largestWindow - defaultWindow),
    ]),
  );

  return {
    send(count) {
      const now = performance.now();
      for (let call = 0; call < count; call += 1) {
        dueAt[nextDue % callsMax] = now;
        nextDue += 1;
      }
      waiting += count;
      flushSoon();
    },
    get unanswered() {
      return waiting + underWay;
    },
    close: () => socket.destroy(),
  };
}

/** Where the due time of a call is kept: calls leave in the order they are due, on streams with odd numbers. */
function placeOf(streamId: number): number {
  return (streamId >> 1) % callsMax;
}
