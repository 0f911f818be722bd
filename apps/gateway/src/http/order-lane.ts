import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { answerText, type HttpAnswer } from './http-answer.ts';
import { type PlainRequest, readPlainRequest } from './plain-request.ts';

export interface OrderLaneOptions {
  /** The path of `POST /order`. */
  readonly path: string;
  /** Must not reject. */
  readonly answer: (request: PlainRequest) => Promise<HttpAnswer>;
  readonly limits: OrderLaneLimits;
}

/** In milliseconds. */
interface OrderLaneLimits {
  /** A connection is kept this long for the next request, and up to two checks longer: callers may send at the last moment. */
  readonly keepAliveTimeoutMs: number;
  /** A connection whose caller has not taken all of its answers this long after the last one is cut off. */
  readonly answerTakenTimeoutMs: number;
  /** How often connections are held against the time limits. One that has brought no request by then is Node.js's. */
  readonly connectionsCheckEveryMs: number;
}

/** The connections of a listener that have brought nothing but plain orders. */
export interface OrderLane {
  /** Ends the connections that wait for a request; the others end with their answer. */
  endConnections(): void;
  /** Cuts all connections off. */
  destroyConnections(): void;
}

/** A request that comes in more pieces, or takes longer to come, is Node.js's, which has limits for that. */
const piecesMax = 8;
const wholeWithinMs = 100;

/**
 * Answers plain requests for orders on the socket that they came on. With anything else a connection is given to the listener's
 * own reader, Node.js's, together with what has come of it, and stays there.
 */
export function openOrderLane(server: Server, { path, answer, limits }: OrderLaneOptions): OrderLane {
  const requestLine = `POST ${path} HTTP/1.1\r\n`;
  const [handOn] = server.listeners('connection') as [(socket: Socket) => void];
  const connections = new Set<LaneConnection>();
  let isEnding = false;
  const options: ConnectionOptions = {
    requestLine,
    answer,
    limits,
    isEnding: () => isEnding,
    handOn: (socket) => handOn.call(server, socket),
    onEndOfPart: (socket) => server.emit('clientError', new EndOfPart(), socket),
    onGone: (connection) => connections.delete(connection),
  };
  server.removeListener('connection', handOn);
  server.on('connection', (socket: Socket) => connections.add(new LaneConnection(socket, options)));
  const checks = setInterval(() => {
    const now = performance.now();
    for (const connection of connections) connection.check(now);
  }, limits.connectionsCheckEveryMs).unref();
  server.once('close', () => clearInterval(checks));
  return {
    endConnections() {
      isEnding = true;
      for (const connection of connections) connection.endIfIdle();
    },
    destroyConnections() {
      for (const connection of connections) connection.destroy();
    },
  };
}

interface ConnectionOptions {
  readonly requestLine: string;
  readonly answer: (request: PlainRequest) => Promise<HttpAnswer>;
  readonly limits: OrderLaneLimits;
  /** Whether answers are the last ones of their connections. */
  readonly isEnding: () => boolean;
  readonly handOn: (socket: Socket) => void;
  /** The caller has ended the connection within a request. */
  readonly onEndOfPart: (socket: Socket) => void;
  /** The connection is closed, or another's. */
  readonly onGone: (connection: LaneConnection) => void;
}

/** One request at a time: what comes before the answer waits in the socket. */
class LaneConnection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  /** What has come since the last request. */
  #held: Buffer | undefined;
  #pieces = 0;
  /** Until the part of a request that is held is Node.js's. */
  #patience: NodeJS.Timeout | undefined;
  /** An answer is under way, or the last one was given. */
  #isBusy = false;
  #hasEnded = false;
  #hasServed = false;
  /** When the connection was opened, or the last answer was written. */
  #since = performance.now();

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('data', this.#take).on('end', this.#end).on('error', this.#fail).on('close', this.#close);
  }

  check(now: number): void {
    const { keepAliveTimeoutMs, answerTakenTimeoutMs, connectionsCheckEveryMs } = this.#options.limits;
    const sinceMs = now - this.#since;
    if (this.#socket.writableLength > 0) {
      if (sinceMs >= answerTakenTimeoutMs) this.destroy();
    } else if (this.#isBusy) return;
    else if (!this.#hasServed) {
      if (sinceMs >= connectionsCheckEveryMs) this.#handOn();
    } else if (sinceMs >= keepAliveTimeoutMs + connectionsCheckEveryMs) this.#finish();
  }

  endIfIdle(): void {
    if (this.#isBusy) return;
    if (this.#held === undefined) this.#finish();
    else this.#handOn();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  readonly #take = (piece: Buffer) => {
    if (this.#isBusy) {
      this.#socket.pause();
      this.#socket.unshift(piece);
      return;
    }
    this.#held = this.#held === undefined ? piece : Buffer.concat([this.#held, piece]);
    this.#pieces += 1;
    const request = readPlainRequest(this.#held, this.#options.requestLine);
    if (request === 'incomplete' && this.#pieces < piecesMax) {
      this.#patience ??= setTimeout(this.#handOn, wholeWithinMs);
    } else if (request === 'incomplete' || request === undefined) this.#handOn();
    else void this.#serve(request);
  };

  readonly #end = () => {
    this.#hasEnded = true;
    if (this.#isBusy) return;
    if (this.#held === undefined) this.#finish();
    else this.#options.onEndOfPart(this.#socket);
    this.#clearHeld();
  };

  readonly #fail = () => this.#socket.destroy();

  readonly #close = () => {
    this.#clearHeld();
    this.#options.onGone(this);
  };

  async #serve(request: PlainRequest): Promise<void> {
    this.#clearHeld();
    this.#isBusy = true;
    const answer = await this.#options.answer(request);
    this.#hasServed = true;
    this.#since = performance.now();
    const isLast = this.#hasEnded || this.#options.isEnding();
    this.#socket.write(answerText(answer, isLast ? 0 : this.#options.limits.keepAliveTimeoutMs));
    // Who takes no answers gets no more of them.
    if (this.#socket.writableNeedDrain && !isLast) await drained(this.#socket);
    this.#isBusy = false;
    if (isLast || this.#hasEnded) this.#finish();
    else this.#socket.resume();
  }

  /** What comes from now on is not read: its answer could not be written. */
  #finish(): void {
    this.#isBusy = true;
    this.#socket.destroySoon();
  }

  readonly #handOn = () => {
    const socket = this.#socket;
    const held = this.#held;
    this.#clearHeld();
    socket.off('data', this.#take).off('end', this.#end).off('error', this.#fail).off('close', this.#close);
    this.#options.onGone(this);
    // Paused, so that what is put back comes first and not before there is someone to read it.
    socket.pause();
    if (held !== undefined) socket.unshift(held);
    this.#options.handOn(socket);
    socket.resume();
  };

  #clearHeld(): void {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#held = undefined;
    this.#pieces = 0;
  }
}

/** Never, where the connection is closed before. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('drain', resolve));
}

/** As Node.js's reader says it of a request whose end does not come. */
class EndOfPart extends Error {
  readonly code = 'HPE_INVALID_EOF_STATE';
}
