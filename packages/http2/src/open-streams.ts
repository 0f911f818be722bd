import { errorCodes, frameBytesMax, noBytes, resetStreamFrame, windowUpdateFrame } from './frames.ts';
import type { Outgoing } from './outgoing.ts';
import type { ReceiveWindow } from './receive-window.ts';
import type { Answer, ServerStream } from './server-stream.ts';

interface StreamEvents {
  /** Frames of a body have been sent, so many. */
  readonly onSent: (frames: number) => void;
  /** A stream is over, and is none of the open ones any more. */
  readonly onClose: (isServed: boolean) => void;
  /** A service wants the connection to end. */
  readonly onLeave: () => void;
  readonly onFault: (error: unknown) => void;
}

/** The open streams of a connection, and what is sent on them. */
export class OpenStreams {
  readonly #outgoing: Outgoing;
  readonly #received: ReceiveWindow;
  readonly #events: StreamEvents;
  readonly #streams = new Map<number, ServerStream>();

  /** `received` is the window of the connection, from which the streams take theirs. */
  constructor(outgoing: Outgoing, received: ReceiveWindow, events: StreamEvents) {
    this.#outgoing = outgoing;
    this.#received = received;
    this.#events = events;
  }

  get size(): number {
    return this.#streams.size;
  }

  get(streamId: number): ServerStream | undefined {
    return this.#streams.get(streamId);
  }

  /** Streams that are over meanwhile are left out. */
  all(): IterableIterator<ServerStream> {
    return this.#streams.values();
  }

  add(stream: ServerStream): void {
    this.#streams.set(stream.id, stream);
  }

  respond(stream: ServerStream, { headers, body, trailers }: Answer): void {
    if (stream.isClosed || stream.hasAnswer) return;
    stream.hasAnswer = true;
    const isWhole = (body === undefined || body.length === 0) && trailers === undefined;
    this.#outgoing.sendHeaders(stream.id, headers, isWhole);
    if (isWhole) {
      this.#answered(stream);
      return;
    }
    stream.unsent = { body: body ?? noBytes, trailers };
    this.goOn(stream);
  }

  /** Sends what the client's windows let of an answer. */
  goOn(stream: ServerStream): void {
    const length = unsentBytes(stream);
    const isAll = this.#outgoing.sendBody(stream);
    const sent = length - unsentBytes(stream);
    if (sent > 0) this.#events.onSent(Math.ceil(sent / frameBytesMax));
    if (isAll) this.#answered(stream);
  }

  release(stream: ServerStream, bytes: number): void {
    const released = Math.min(bytes, stream.received.held);
    this.releaseUnread(released);
    const told = stream.received.release(released);
    if (told > 0 && !stream.isClosed && !stream.isReceived) this.#outgoing.send(windowUpdateFrame(stream.id, told));
  }

  /** Gives back what came for no stream. */
  releaseUnread(bytes: number): void {
    const told = this.#received.release(bytes);
    if (told > 0) this.#outgoing.send(windowUpdateFrame(0, told));
  }

  reset(stream: ServerStream, code: number): void {
    if (stream.isClosed) return;
    this.#outgoing.send(resetStreamFrame(stream.id, code));
    this.close(stream, code);
  }

  closeConnection(): void {
    this.#events.onLeave();
  }

  close(stream: ServerStream, code: number): void {
    if (stream.isClosed) return;
    const isServed = stream.answeredAt !== undefined;
    stream.closeCode = isServed ? errorCodes.noError : code === errorCodes.noError ? errorCodes.cancel : code;
    stream.unsent = undefined;
    this.#streams.delete(stream.id);
    this.release(stream, stream.received.held);
    this.tellClose(stream);
    this.#events.onClose(isServed);
  }

  closeAll(): void {
    for (const stream of this.#streams.values()) this.close(stream, errorCodes.cancel);
  }

  /** An error of a listener here, where there may be nobody to catch it, would end the process. */
  tellClose({ listener, closeCode = errorCodes.cancel }: ServerStream): void {
    try {
      listener?.onClose(closeCode);
    } catch (error) {
      this.#events.onFault(error);
    }
  }

  #answered(stream: ServerStream): void {
    stream.answeredAt = performance.now();
    if (stream.isReceived) this.close(stream, errorCodes.noError);
    else this.release(stream, stream.received.held);
  }
}

function unsentBytes({ unsent }: ServerStream): number {
  return unsent?.body.length ?? 0;
}
