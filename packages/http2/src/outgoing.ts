import type { Socket } from 'node:net';
import {
  ConnectionFault,
  defaultWindow,
  errorCodes,
  flags,
  frame,
  frameBytesMax,
  frameTypes,
  largestWindow,
} from './frames.ts';
import { type AnswerFields, encodeHeaders } from './header-encoder.ts';
import type { ServerStream } from './server-stream.ts';

/** A change of the header table to no bytes (RFC 7541, 6.3). */
const unusedTable = Buffer.from([0x20]);

/** What a connection sends: frames, and of answers as much as the client's windows let (RFC 9113, 5.2). */
export class Outgoing {
  readonly #socket: Socket;
  #unwritten: Buffer[] = [];
  #window = defaultWindow;
  #streamWindow = defaultWindow;
  #blockedSince: number | undefined;
  /** Whether the client still has to be told that its header table is not used. */
  #owesResize = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('drain', () => {
      this.#blockedSince = undefined;
      socket.resume();
    });
  }

  /** The window that a new stream begins with. */
  get streamWindow(): number {
    return this.#streamWindow;
  }

  /** Since when the client takes nothing of what was written, on the clock of `performance.now()`. */
  get blockedSince(): number | undefined {
    return this.#blockedSince;
  }

  /** Frames of one turn of the event loop leave together. */
  send(bytes: Buffer): void {
    if (this.#unwritten.length === 0) process.nextTick(writeOut, this);
    this.#unwritten.push(bytes);
  }

  /** In one frame, and those that continue it where the fields are long. */
  sendHeaders(streamId: number, fields: AnswerFields, endsStream: boolean): void {
    let type: number = frameTypes.headers;
    let set: number = endsStream ? flags.endStream : 0;
    let block = encodeHeaders(fields);
    if (this.#owesResize) block = Buffer.concat([unusedTable, block]);
    this.#owesResize = false;
    while (block.length > frameBytesMax) {
      this.send(frame(type, set, streamId, block.subarray(0, frameBytesMax)));
      block = block.subarray(frameBytesMax);
      type = frameTypes.continuation;
      set = 0;
    }
    this.send(frame(type, set | flags.endHeaders, streamId, block));
  }

  /** Sends what the windows let of a stream's body, and after it what ends the stream. Gives whether that was all. */
  sendBody(stream: ServerStream): boolean {
    if (stream.unsent === undefined) return false;
    const { trailers } = stream.unsent;
    let { body } = stream.unsent;
    while (body.length > 0) {
      const length = Math.min(body.length, frameBytesMax, stream.sendWindow, this.#window);
      if (length <= 0) {
        stream.unsent = { body, trailers };
        return false;
      }
      const isLast = length === body.length && trailers === undefined;
      this.send(frame(frameTypes.data, isLast ? flags.endStream : 0, stream.id, body.subarray(0, length)));
      body = body.subarray(length);
      stream.sendWindow -= length;
      this.#window -= length;
    }
    stream.unsent = undefined;
    if (trailers !== undefined) this.sendHeaders(stream.id, trailers, true);
    return true;
  }

  widen(bytes: number): void {
    this.#window = widened(this.#window, bytes);
  }

  /** The client has set another window for every stream, open ones included (RFC 9113, 6.9.2). */
  setStreamWindow(bytes: number, streams: Iterable<ServerStream>): void {
    const change = widened(0, bytes) - this.#streamWindow;
    this.#streamWindow = bytes;
    for (const stream of streams) stream.sendWindow = widened(stream.sendWindow, change);
  }

  /** The client's table has become smaller than it was at first: the next block has to begin with it (RFC 9113, 4.3.1). */
  oweResize(): void {
    this.#owesResize = true;
  }

  /** Writes what has gathered. While the client takes nothing, nothing more is read from it. */
  write(): void {
    const unwritten = this.#unwritten;
    const [first] = unwritten;
    if (first === undefined) return;
    this.#unwritten = [];
    if (!this.#socket.writable) return;
    if (this.#socket.write(unwritten.length === 1 ? first : Buffer.concat(unwritten))) return;
    this.#blockedSince ??= performance.now();
    this.#socket.pause();
  }
}

function writeOut(outgoing: Outgoing): void {
  outgoing.write();
}

function widened(window: number, bytes: number): number {
  const wider = window + bytes;
  if (wider > largestWindow) throw new ConnectionFault(errorCodes.flowControlError, 'too large a window');
  return wider;
}
