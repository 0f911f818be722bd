import type { AnswerFields } from './header-encoder.ts';
import type { OpenStreams } from './open-streams.ts';
import { ReceiveWindow } from './receive-window.ts';
import type { RequestFields } from './request-fields.ts';

/** A whole answer. */
export interface Answer {
  /** Begins with `:status`. */
  readonly headers: AnswerFields;
  readonly body?: Buffer | undefined;
  readonly trailers?: AnswerFields | undefined;
}

/** Who takes the request of a stream; told in this order, `onClose` exactly once and last. */
export interface StreamListener {
  /**
   * A piece of the body, part of a larger one that lasts as long as it. It has to be given back by `release`, once it takes no room
   * or is not needed any more.
   */
  onData(bytes: Buffer): void;
  /** The body is at its end. Not told where that comes after the answer. */
  onEnd(): void;
  /** The stream is over: with 0 after all of the answer was sent, else given up by either side (RFC 9113, 7). */
  onClose(code: number): void;
}

/** What a stream begins with. */
interface Beginning {
  readonly id: number;
  readonly fields: RequestFields;
  readonly contentLength: number | undefined;
  /** On the clock of `performance.now()`. */
  readonly openedAt: number;
  readonly sendWindow: number;
  readonly receiveWindow: number;
}

/** One request and its answer. What can be written here is kept by the connection. */
export class ServerStream {
  readonly id: number;
  readonly fields: RequestFields;
  readonly openedAt: number;
  readonly received: ReceiveWindow;
  readonly #streams: OpenStreams;
  listener: StreamListener | undefined;
  sendWindow: number;
  /** What is still to come by `content-length`. */
  lengthLeft: number | undefined;
  /** Whether the request is at its end. */
  isReceived = false;
  /** Whether an answer was given, and what of it waits for the client's windows. */
  hasAnswer = false;
  unsent: { readonly body: Buffer; readonly trailers: AnswerFields | undefined } | undefined;
  /** When all of the answer was sent. */
  answeredAt: number | undefined;
  /** Undefined while it is open. */
  closeCode: number | undefined;

  constructor(streams: OpenStreams, { id, fields, contentLength, openedAt, sendWindow, receiveWindow }: Beginning) {
    this.#streams = streams;
    this.id = id;
    this.fields = fields;
    this.openedAt = openedAt;
    this.sendWindow = sendWindow;
    this.received = new ReceiveWindow(receiveWindow);
    this.lengthLeft = contentLength;
  }

  get isClosed(): boolean {
    return this.closeCode !== undefined;
  }

  /** Gives bytes of the body back: the client may send as many more. */
  release(bytes: number): void {
    this.#streams.release(this, bytes);
  }

  /** Sends the answer. A second one, or one to a stream that is over, is dropped. */
  respond(answer: Answer): void {
    this.#streams.respond(this, answer);
  }

  /** Gives the stream up. */
  reset(code: number): void {
    this.#streams.reset(this, code);
  }

  /** Takes no new requests on the stream's connection, and ends it when those under way are done. */
  closeConnection(): void {
    this.#streams.closeConnection();
  }
}
