import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { parseTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  OrderService,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { OrderInput } from '@gateway/domain/parse-order';
import { success } from '@gateway/domain/result';
import { fieldOf, type RequestFields } from '@gateway/http2/request-fields';
import type { ServerStream, StreamListener } from '@gateway/http2/server-stream';
import type { KeptOrder } from '../create-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs, http2Limits } from '../limits.ts';
import { orderAnswer } from '../order-answer.ts';
import { WaitingBytes } from './held-bytes.ts';
import { encodeEnvelope } from './lane-envelopes.ts';
import { MessageReading } from './lane-message.ts';
import {
  admitCall,
  answerCreateOrder,
  type Call,
  completeRefusal,
  faulted,
  logCall,
  openCall,
  refused,
} from './order-call.ts';
import { answerMessage } from './order-message.ts';
import { orderInputOf } from './order-service.ts';
import { readOrderInput, writeOrderAnswer } from './order-wire.ts';

const createOrderPath = `/${OrderService.typeName}/${OrderService.method.createOrder.name}`;

const okTrailers = ['grpc-status', '0'];

/**
 * Whether a call is one that the lane answers: CreateOrder as an ordinary gRPC client sends it. Anything less ordinary, a query
 * in the path or a parameter of the media type included, is Connect's.
 */
export function isLaneCall(fields: RequestFields): boolean {
  const encoding = fieldOf(fields, 'grpc-encoding');
  const mediaType = fieldOf(fields, 'content-type');
  return (
    fieldOf(fields, ':path') === createOrderPath &&
    fieldOf(fields, ':method') === 'POST' &&
    (mediaType === 'application/grpc' || mediaType === 'application/grpc+proto') &&
    (encoding === undefined || encoding === 'identity')
  );
}

/**
 * A call that is answered straight on its stream, as Connect's gRPC handler would, without its pipeline of generators and
 * signals. What it answers is held against Connect's handler by `test/grpc-lane-and-connect.test.ts`.
 */
export class LaneCall implements StreamListener {
  readonly #deps: GatewayDeps;
  readonly #stream: ServerStream;
  readonly #call: Call;
  readonly #timeoutError: ConnectError | undefined;
  /** Whether the caller's time is over before the gateway's own. */
  readonly #isCallers: boolean;
  /** On the clock of `performance.now()`. */
  readonly #endsAt: number;
  readonly #deadline: NodeJS.Timeout;
  readonly #reading = new MessageReading(decodeOrderInput);
  /** What came before the credentials were checked; read after that. */
  #early: WaitingBytes | undefined = new WaitingBytes(http2Limits.streamWindow);
  #isReceived = false;

  constructor(deps: GatewayDeps, stream: ServerStream) {
    this.#deps = deps;
    this.#stream = stream;
    this.#call = openCall(deps, 'grpc', fieldOf(stream.fields, 'x-request-id'));
    const timeout = fieldOf(stream.fields, 'grpc-timeout') ?? null;
    const { timeoutMs = callTimeoutMs, error } = parseTimeout(timeout, Number.MAX_SAFE_INTEGER);
    this.#timeoutError = error;
    this.#isCallers = timeoutMs < callTimeoutMs;
    this.#endsAt = this.#call.startedAt + Math.min(timeoutMs, callTimeoutMs);
    this.#deadline = setTimeout(endAtDeadline, this.#timeLeftMs(), this);
    void this.#serve();
  }

  onData(bytes: Buffer): void {
    if (this.#early === undefined) this.#take(bytes);
    else this.#early.add(bytes);
  }

  onEnd(): void {
    this.#isReceived = true;
    if (this.#early === undefined) this.#reading.finish();
  }

  onClose(): void {
    clearTimeout(this.#deadline);
    logCall(this.#deps.log, this.#call);
  }

  /** Answers a call whose time is over. A connection on which a message did not even come in our own time is ended. */
  endAtDeadline(): void {
    const trickles = !this.#isCallers && this.#call.caller !== undefined && !this.#isReceived;
    if (this.#call.code === 'cancelled') this.#refuse(refused(this.#call, { kind: 'deadline_exceeded' }));
    if (trickles) this.#stream.closeConnection();
  }

  async #serve(): Promise<void> {
    const deps = this.#deps;
    const call = this.#call;
    try {
      const { fields } = this.#stream;
      const clientId = fieldOf(fields, 'x-client-id');
      const clientSecret = fieldOf(fields, 'x-client-secret');
      await admitCall(deps, call, { clientId, clientSecret }, this.#timeLeftMs());
      if (this.#timeoutError !== undefined) throw this.#timeoutError;
      this.#startReading();
      const input = success(await this.#reading.message());
      this.#succeed(await answerCreateOrder(deps, call, input, this.#timeLeftMs()));
    } catch (error) {
      this.#refuse(error instanceof ConnectError ? error : faulted(deps, call, error));
    }
  }

  #timeLeftMs(): number {
    return Math.max(0, this.#endsAt - performance.now());
  }

  #startReading(): void {
    const early = this.#early?.take();
    this.#early = undefined;
    if (early !== undefined) this.#take(early);
    if (this.#isReceived) this.#reading.finish();
  }

  /** Of a message that is refused nothing more is asked for. */
  #take(bytes: Buffer): void {
    if (this.#reading.take(bytes) === 'taken') this.#stream.release(bytes.length);
  }

  #succeed({ order, replayed }: KeptOrder): void {
    const headers = this.#headers();
    if (replayed) headers.push('idempotent-replayed', 'true');
    const answer = orderAnswer(order, this.#deps.baseUrl());
    const data =
      writeOrderAnswer(answer) ??
      toBinary(CreateOrderResponseSchema, create(CreateOrderResponseSchema, answerMessage(answer)));
    this.#stream.respond({ headers, body: encodeEnvelope(data), trailers: okTrailers });
  }

  /** A second answer is dropped by the stream. */
  #refuse(error: ConnectError): void {
    completeRefusal(this.#call, error);
    const status = setTrailerStatus(new Headers(), error);
    status.set('grpc-message', percentEncoded(error.rawMessage));
    this.#stream.respond({ headers: this.#headers(), trailers: [...status].flat() });
  }

  #headers(): string[] {
    return [':status', '200', 'content-type', 'application/grpc+proto', 'x-request-id', this.#call.requestId];
  }
}

function endAtDeadline(call: LaneCall): void {
  call.endAtDeadline();
}

function decodeOrderInput(data: Buffer): OrderInput {
  return readOrderInput(data) ?? orderInputOf(fromBinary(CreateOrderRequestSchema, data));
}

/**
 * What the protocol wants encoded and nothing else (github.com/grpc/grpc, PROTOCOL-HTTP2, Percent-Encoded): grpc-js, for one, does
 * not decode the `:` and `/` that Connect encodes too. A header value neither begins nor ends with a blank (RFC 9113, 8.2.1).
 */
function percentEncoded(message: string): string {
  return message.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]|^ | $/gu, encodeURIComponent);
}
