import { connect, type Socket } from 'node:net';
import { type Frame, FrameReader } from '../src/frame-reader.ts';
import { errorCodes, flags, frame, frameTypes, preface, settingsFrame } from '../src/frames.ts';
import { encodeHeaders } from '../src/header-encoder.ts';

/** Long against anything that a server does by itself. */
const patienceMs = 15_000;

/** A client that sends whatever it is told, and keeps the frames that come. */
export interface RawClient {
  readonly socket: Socket;
  readonly frames: readonly Frame[];
  send(...pieces: readonly Uint8Array[]): void;
  /** Resolves when this is true, looked at whenever something comes, and gives false where that takes too long. */
  until(isSo: () => boolean): Promise<boolean>;
  /** The first frame for which this is true, come or still to come. */
  frame(isIt: (one: Frame) => boolean): Promise<Frame>;
  /** Resolves when the server has ended the connection. */
  readonly closed: Promise<void>;
  isClosed(): boolean;
}

export async function openRawClient(port: number): Promise<RawClient> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const frames: Frame[] = [];
  const reader = new FrameReader();
  let wake = Promise.withResolvers<void>();
  let isText = false;
  let isClosed = false;
  socket.on('data', (bytes: Buffer) => {
    // To what is no preface of HTTP/2 the server answers in words.
    isText ||= bytes.subarray(0, 5).toString() === 'HTTP/';
    if (!isText) reader.take(bytes, (one) => frames.push(one));
    wake.resolve();
    wake = Promise.withResolvers();
  });
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => {
    const end = () => {
      isClosed = true;
      wake.resolve();
      wake = Promise.withResolvers();
      resolve();
    };
    socket.once('end', end);
    socket.once('close', end);
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  const until = async (isSo: () => boolean) => {
    const patience = setTimeout(() => wake.resolve(), patienceMs);
    const endsAt = performance.now() + patienceMs;
    while (!isSo() && performance.now() < endsAt - 1) await wake.promise;
    clearTimeout(patience);
    return isSo();
  };
  return {
    socket,
    frames,
    send: (...pieces) => {
      for (const piece of pieces) socket.write(piece);
    },
    until,
    async frame(isIt) {
      await until(() => isClosed || frames.some(isIt));
      const come = frames.find(isIt);
      if (come === undefined)
        throw new Error(isClosed ? 'the connection ended before the frame came' : 'no such frame');
      return come;
    },
    closed,
    isClosed: () => isClosed,
  };
}

export const hello = Buffer.concat([preface, settingsFrame([])]);

export const requestFields: readonly string[] = [
  ...[':method', 'POST', ':scheme', 'http', ':path', '/there', ':authority', 'localhost'],
  ...['content-type', 'application/grpc', 'te', 'trailers'],
];

export function headersFrame(
  streamId: number,
  fields: readonly string[] = requestFields,
  set: number = flags.endHeaders | flags.endStream,
): Buffer {
  return frame(frameTypes.headers, set, streamId, encodeHeaders(fields));
}

export function dataFrame(streamId: number, data: Uint8Array, set: number = flags.endStream): Buffer {
  return frame(frameTypes.data, set, streamId, data);
}

export const isAnswerOf = (streamId: number) => (one: Frame) =>
  one.type === frameTypes.headers && one.streamId === streamId;

export const isFarewell = ({ type }: Frame) => type === frameTypes.goAway;

/** The code of a farewell, by its name. */
export function farewellCode({ payload }: Frame): string {
  return nameOf(payload.readUInt32BE(4));
}

export function nameOf(code: number): string {
  return Object.entries(errorCodes).find(([, value]) => value === code)?.[0] ?? String(code);
}
