import type { Socket } from 'node:net';
import { Budget } from './budget.ts';
import { readSettings } from './client-settings.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { checkForm, withoutPadding } from './frame-rules.ts';
import {
  ConnectionFault,
  errorCodes,
  flags,
  frame,
  frameTypes,
  goAwayFrame,
  largestWindow,
  noBytes,
  preface,
  resetStreamFrame,
} from './frames.ts';
import { greeting, versionNotSupported } from './greeting.ts';
import { type HeaderBlock, HeaderBlocks } from './header-blocks.ts';
import { type DecodedHeaders, HeaderDecoder } from './header-decoder.ts';
import { tableBytesMax } from './header-table.ts';
import type { Http2Limits } from './limits.ts';
import { OpenStreams } from './open-streams.ts';
import { Outgoing } from './outgoing.ts';
import { ReceiveWindow } from './receive-window.ts';
import { areTrailers, contentLengthOf, isRequest } from './request-fields.ts';
import { ServerStream, type StreamListener } from './server-stream.ts';

export interface ConnectionOptions {
  readonly limits: Http2Limits;
  readonly onStream: (stream: ServerStream) => StreamListener;
  /** Tells people whose client speaks HTTP/1.1 where they are: a line of text. */
  readonly hint: string;
  /** Told of an error of ours, which ends the connection. */
  readonly onFault: (error: unknown) => void;
}

/** The server's side of one HTTP/2 connection (RFC 9113). Whatever comes on it, the worst is that it ends. */
export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #frames = new FrameReader();
  readonly #onFrame = (one: Frame) => this.#takeFrame(one);
  readonly #blocks: HeaderBlocks;
  readonly #decoder: HeaderDecoder;
  readonly #outgoing: Outgoing;
  readonly #received: ReceiveWindow;
  readonly #streams: OpenStreams;
  readonly #resets: Budget;
  readonly #idleFrames: Budget;
  #prefaceLeft = preface;
  #hasSettings = false;
  #lastStreamId = 0;
  #isEnding = false;
  #idleSince = performance.now();
  /** Whether a request was ever answered. */
  #hasServed = false;
  /** Since when the other side owes the rest of a frame or of a header block. */
  #cutSince: number | undefined;
  /** When the socket is cut off, whatever the other side does. */
  #endsAt = Number.POSITIVE_INFINITY;

  constructor(socket: Socket, options: ConnectionOptions) {
    const { limits } = options;
    this.#socket = socket;
    this.#options = options;
    this.#blocks = new HeaderBlocks(limits.headerBlockBytesMax);
    this.#decoder = new HeaderDecoder(limits);
    this.#outgoing = new Outgoing(socket);
    this.#received = new ReceiveWindow(limits.connectionWindow);
    this.#streams = new OpenStreams(this.#outgoing, this.#received, {
      // Clients tell of the room again, some after each frame.
      onSent: (frames) => this.#idleFrames.earn(frames * limits.idleFramesPerStream),
      onClose: (isServed) => this.#noteClose(isServed),
      onLeave: () => this.close(),
      onFault: options.onFault,
    });
    this.#resets = new Budget(limits.resetBurst, limits.resetRate, this.#idleSince);
    this.#idleFrames = new Budget(limits.idleFrameBurst, limits.idleFrameRate, this.#idleSince);
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#streams.closeAll());
  }

  /** Takes no new requests, and ends the connection when those under way are done. */
  close(): void {
    if (!this.#isEnding) this.#sayFarewell(errorCodes.noError);
    this.#endIfDone();
  }

  /** Cuts the connection off at this time at the latest, on the clock of `performance.now()`. */
  endBy(endsAt: number): void {
    this.#endsAt = Math.min(this.#endsAt, endsAt);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends what is of no use: to be called about once a second. */
  check(now: number): void {
    const { limits } = this.#options;
    const blockedMs = now - (this.#outgoing.blockedSince ?? now);
    if (now >= this.#endsAt || blockedMs >= limits.blockedTimeoutMs) {
      this.destroy();
      return;
    }
    for (const stream of this.#streams.all()) {
      if (stream.answeredAt !== undefined) {
        if (now - stream.answeredAt >= limits.lingerMs) this.#streams.reset(stream, errorCodes.noError);
      } else if (now - stream.openedAt >= limits.requestTimeoutMs) {
        this.#streams.reset(stream, errorCodes.cancel);
        this.close();
      }
    }
    if (now - (this.#cutSince ?? now) >= limits.requestTimeoutMs) this.close();
    const idleMs = this.#streams.size === 0 ? now - this.#idleSince : 0;
    if (idleMs >= (this.#hasServed ? limits.idleTimeoutMs : limits.headersTimeoutMs)) this.close();
    if (this.#isEnding) this.endBy(now + (this.#streams.size === 0 ? limits.lingerMs : limits.closingTimeoutMs));
  }

  #take(bytes: Buffer): void {
    // What comes after the end is read and thrown away, so that the other side gets to know of the end.
    if (this.#isEnding && this.#streams.size === 0) return;
    try {
      const rest = this.#takePreface(bytes);
      if (rest === undefined) this.#refuseProtocol();
      else if (rest.length > 0) this.#frames.take(rest, this.#onFrame);
      if (this.#frames.isCut || this.#blocks.isCut) this.#cutSince ??= performance.now();
    } catch (error) {
      if (!(error instanceof ConnectionFault)) this.#options.onFault(error);
      this.#sayFarewell(error instanceof ConnectionFault ? error.code : errorCodes.internalError);
      this.#streams.closeAll();
      this.#endIfDone();
    }
  }

  /** Gives what comes after the preface; undefined where that is none. */
  #takePreface(bytes: Buffer): Buffer | undefined {
    if (this.#prefaceLeft.length === 0) return bytes;
    const come = bytes.subarray(0, this.#prefaceLeft.length);
    if (!come.equals(this.#prefaceLeft.subarray(0, come.length))) return undefined;
    this.#prefaceLeft = this.#prefaceLeft.subarray(come.length);
    // Not sooner: a client of another protocol would show its user bytes that mean nothing.
    if (this.#prefaceLeft.length === 0) this.#outgoing.send(greeting(this.#options.limits));
    return bytes.subarray(come.length);
  }

  #refuseProtocol(): void {
    this.#isEnding = true;
    this.#outgoing.send(versionNotSupported(this.#options.hint));
    this.#endIfDone();
  }

  #takeFrame(one: Frame): void {
    checkForm(one);
    this.#blocks.check(one);
    if (one.type !== frameTypes.continuation) this.#cutSince = undefined;
    if (!this.#hasSettings && one.type !== frameTypes.settings) throw protocolFault('no settings first');
    switch (one.type) {
      case frameTypes.data:
        this.#takeData(one);
        return;
      case frameTypes.headers:
        this.#takeHeaders(one);
        return;
      case frameTypes.continuation:
        this.#countIdleFrame();
        this.#takeHeaders(one);
        return;
      case frameTypes.resetStream:
        this.#takeReset(one);
        return;
      case frameTypes.settings:
        this.#takeSettings(one);
        return;
      case frameTypes.ping:
        this.#countIdleFrame();
        if (!isSet(one, flags.ack)) this.#outgoing.send(frame(frameTypes.ping, flags.ack, 0, one.payload));
        return;
      case frameTypes.windowUpdate:
        this.#takeWindowUpdate(one);
        return;
      case frameTypes.pushPromise:
        throw protocolFault('a push by a client');
      default:
        // Priorities mean nothing any more, nor do types that are not known (RFC 9113, 5.3.2 and 4.1).
        this.#countIdleFrame();
        return;
    }
  }

  #takeData(one: Frame): void {
    const stream = this.#streamOf(one.streamId);
    const data = withoutPadding(one);
    const bytes = one.payload.length;
    if (!this.#received.take(bytes)) throw new ConnectionFault(errorCodes.flowControlError, 'more than the window');
    if (stream === undefined || stream.isReceived) {
      this.#streams.releaseUnread(bytes);
      this.#countIdleFrame();
      if (stream !== undefined) this.#resetForFault(stream, errorCodes.streamClosed);
      return;
    }
    if (!stream.received.take(bytes)) {
      this.#resetForFault(stream, errorCodes.flowControlError);
      return;
    }
    if (stream.lengthLeft !== undefined) {
      stream.lengthLeft -= data.length;
      if (stream.lengthLeft < 0) {
        this.#resetForFault(stream, errorCodes.protocolError);
        return;
      }
    }
    this.#streams.release(stream, stream.hasAnswer ? bytes : bytes - data.length);
    if (data.length > 0 && !stream.hasAnswer) stream.listener?.onData(data);
    if (isSet(one, flags.endStream)) this.#end(stream);
    else if (data.length === 0) this.#countIdleFrame();
  }

  #takeHeaders(one: Frame): void {
    const block = this.#blocks.take(one);
    if (block === undefined) return;
    // Also of a stream that is not wanted: the next blocks lean on what this one leaves in the table.
    const decoded = this.#decoder.decode(block.bytes);
    const stream = this.#streams.get(block.streamId);
    if (stream !== undefined) this.#takeTrailers(stream, block, decoded);
    else if (block.streamId > this.#lastStreamId) this.#open(block, decoded);
    // Trailers may have been under way when the stream ended; a request whose number is not a new one never is (RFC 9113, 5.1.1).
    else if (isRequest(decoded)) throw protocolFault('a request on the stream of an earlier one');
    else this.#countIdleFrame();
  }

  #open({ streamId: id, endsStream }: HeaderBlock, decoded: DecodedHeaders): void {
    if (this.#isEnding) return;
    const { limits, onStream } = this.#options;
    this.#lastStreamId = id;
    if (this.#streams.size >= limits.streamsMax) {
      this.#refuse(id, errorCodes.refusedStream);
      return;
    }
    if (decoded.isTooLarge) {
      this.#refuse(id, errorCodes.enhanceYourCalm);
      return;
    }
    const { fields } = decoded;
    const contentLength = contentLengthOf(fields);
    const isWrongLength = Number.isNaN(contentLength) || (endsStream && (contentLength ?? 0) > 0);
    if (isWrongLength || !isRequest(decoded)) {
      this.#refuse(id, errorCodes.protocolError);
      return;
    }
    const stream = new ServerStream(this.#streams, {
      id,
      fields,
      contentLength,
      openedAt: performance.now(),
      sendWindow: this.#outgoing.streamWindow,
      receiveWindow: limits.streamWindow,
    });
    this.#streams.add(stream);
    this.#idleFrames.earn(limits.idleFramesPerStream);
    stream.listener = onStream(stream);
    if (stream.isClosed) this.#streams.tellClose(stream);
    else if (endsStream) this.#end(stream);
  }

  #takeTrailers(stream: ServerStream, { endsStream }: HeaderBlock, decoded: DecodedHeaders): void {
    if (stream.isReceived) {
      this.#resetForFault(stream, errorCodes.streamClosed);
      return;
    }
    if (!endsStream || !areTrailers(decoded)) {
      this.#resetForFault(stream, errorCodes.protocolError);
      return;
    }
    this.#end(stream);
  }

  /** The request of a stream is at its end. */
  #end(stream: ServerStream): void {
    if (stream.isClosed) return;
    if (stream.lengthLeft !== undefined && stream.lengthLeft !== 0) {
      this.#resetForFault(stream, errorCodes.protocolError);
      return;
    }
    stream.isReceived = true;
    if (stream.answeredAt !== undefined) this.#streams.close(stream, errorCodes.noError);
    else if (!stream.hasAnswer) stream.listener?.onEnd();
  }

  #takeReset({ streamId, payload }: Frame): void {
    const stream = this.#streamOf(streamId);
    if (stream === undefined) {
      this.#countIdleFrame();
      return;
    }
    const isQuick = performance.now() - stream.openedAt < this.#options.limits.quickResetMs;
    // One that was answered cost no more than any other, and is given up by clients that see no sense in sending the rest.
    const counts = stream.answeredAt === undefined && isQuick;
    this.#streams.close(stream, payload.readUInt32BE(0));
    if (counts) this.#countReset();
  }

  #takeSettings(one: Frame): void {
    const { payload } = one;
    this.#countIdleFrame();
    if (isSet(one, flags.ack)) {
      if (!this.#hasSettings) throw protocolFault('no settings first');
      if (payload.length > 0) throw new ConnectionFault(errorCodes.frameSizeError, 'settings that acknowledge');
      return;
    }
    this.#hasSettings = true;
    // Of the settings only these change what is sent: frames are as short as all take them.
    const { initialWindowSize, headerTableSize } = readSettings(payload);
    if (headerTableSize !== undefined && headerTableSize < tableBytesMax) this.#outgoing.oweResize();
    if (initialWindowSize !== undefined) this.#outgoing.setStreamWindow(initialWindowSize, this.#streams.all());
    this.#outgoing.send(frame(frameTypes.settings, flags.ack, 0, noBytes));
    if (initialWindowSize === undefined) return;
    for (const stream of this.#streams.all()) this.#streams.goOn(stream);
  }

  #takeWindowUpdate({ streamId, payload }: Frame): void {
    this.#countIdleFrame();
    const bytes = payload.readUInt32BE(0) & largestWindow;
    if (streamId === 0) {
      if (bytes === 0) throw protocolFault('a window update of nothing');
      this.#outgoing.widen(bytes);
      for (const stream of this.#streams.all()) this.#streams.goOn(stream);
      return;
    }
    const stream = this.#streamOf(streamId);
    if (stream === undefined) return;
    stream.sendWindow += bytes;
    if (bytes === 0) this.#resetForFault(stream, errorCodes.protocolError);
    else if (stream.sendWindow > largestWindow) this.#resetForFault(stream, errorCodes.flowControlError);
    else this.#streams.goOn(stream);
  }

  /** The stream of this number, if it is still open. Throws where there was none yet (RFC 9113, 5.1). */
  #streamOf(streamId: number): ServerStream | undefined {
    // After the farewell, streams that the client began before it knew are passed over.
    if (streamId > this.#lastStreamId && !this.#isEnding) throw protocolFault('a frame of a stream before its headers');
    return this.#streams.get(streamId);
  }

  #noteClose(isServed: boolean): void {
    this.#idleSince = performance.now();
    this.#hasServed ||= isServed;
    if (isServed) this.#resets.earn(this.#options.limits.resetsPerAnswer);
    if (this.#isEnding) this.#endIfDone();
  }

  #refuse(streamId: number, code: number): void {
    this.#outgoing.send(resetStreamFrame(streamId, code));
    this.#countReset();
  }

  #resetForFault(stream: ServerStream, code: number): void {
    this.#streams.reset(stream, code);
    this.#countReset();
  }

  /** Resets by either side cost work and end in nothing (rapid reset, CVE-2023-44487, and its turn, CVE-2025-8671). */
  #countReset(): void {
    if (!this.#resets.spend(performance.now())) throw calmFault('too many resets');
  }

  /** Frames that bring no request further. */
  #countIdleFrame(): void {
    if (!this.#idleFrames.spend(performance.now())) throw calmFault('too many frames without a request');
  }

  #sayFarewell(code: number): void {
    this.#isEnding = true;
    if (this.#prefaceLeft.length > 0) return;
    this.#outgoing.send(goAwayFrame(this.#lastStreamId, code));
  }

  #endIfDone(): void {
    if (this.#streams.size > 0) return;
    this.#outgoing.write();
    this.#socket.end();
  }
}

function isSet({ flags: set }: Frame, flag: number): boolean {
  return (set & flag) !== 0;
}

function protocolFault(what: string): ConnectionFault {
  return new ConnectionFault(errorCodes.protocolError, what);
}

function calmFault(what: string): ConnectionFault {
  return new ConnectionFault(errorCodes.enhanceYourCalm, what);
}
