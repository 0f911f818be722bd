import type { IncomingHttpHeaders } from 'node:http';
import type { DescService } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc';
import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { ServerReflection } from '@gateway/contract/grpc/reflection/v1/reflection_pb';
import { ServerReflection as ServerReflectionAlpha } from '@gateway/contract/grpc/reflection/v1alpha/reflection_pb';
import { Health } from '@gateway/contract/health/v1/health_pb';
import type { Failure } from '@gateway/domain/failure';
import type { Account } from '@gateway/domain/merchant';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Call, Success } from '../call.ts';
import { bodyFailure, type CallBody } from '../call-body.ts';
import { messageBytesMax, responseBytesMax } from '../limits.ts';
import { connectErrorOf } from './errors.ts';

/** A call of an RPC, with the body that was read for it. */
export interface RpcCall {
  readonly call: Call;
  readonly body: CallBody;
  /** Whether the body is JSON, which the method reads as strictly as `POST /order`. */
  readonly isJson: boolean;
}

export const rpcCallKey = createContextKey<RpcCall | undefined>(undefined, { description: 'the call' });

export type RpcContext = Pick<HandlerContext, 'values' | 'responseHeader'>;

/** A service with its implementation, for Connect's router and for the fast path. */
export interface RpcService {
  readonly descriptor: DescService;
  /** A `ServiceImpl` of the descriptor whose unary methods need no more than {@link RpcContext}. */
  readonly implementation: object;
}

/** The services that anyone may call: without credentials, and without a log line for each call. */
export const publicServices: ReadonlySet<DescService> = new Set<DescService>([
  Health,
  ServerReflection,
  ServerReflectionAlpha,
]);

function rpcCallOf({ values }: Pick<HandlerContext, 'values'>): RpcCall {
  const rpcCall = values.get(rpcCallKey);
  if (rpcCall === undefined) throw new Error('a call without its context');
  return rpcCall;
}

/** The value of a step of a call; throws its failure as the error that Connect sends. */
async function valueOrThrow<Value>(call: Call, step: Promise<Result<Value, Failure>>): Promise<Value> {
  const result = await step;
  if (!result.ok) throw connectErrorOf(result.failure, call.requestId);
  return result.value;
}

/**
 * Makes a method of a service from what reads its request and what handles it. It returns its message or throws its failure,
 * records the outcome, and marks a replayed response.
 */
export function method<Request, Input, Message>(
  read: (request: Request, rpcCall: RpcCall) => Result<Input, Failure>,
  handle: (
    input: Input,
    call: Call,
  ) => Promise<Result<{ readonly message: Message; readonly outcome: Success }, Failure>>,
): (request: Request, context: RpcContext) => Promise<Message> {
  return async (request, context) => {
    const rpcCall = rpcCallOf(context);
    const { call } = rpcCall;
    const { message, outcome } = await valueOrThrow(
      call,
      call.run(async () => {
        const input = read(request, rpcCall);
        return input.ok ? handle(input.value, call) : input;
      }),
    );
    call.succeed(outcome);
    if (outcome === 'replayed') context.responseHeader.set('idempotent-replayed', 'true');
    return message;
  };
}

/**
 * Checks the credentials where the service needs them, then that the message came and its size, before the message is parsed.
 */
export async function authenticateRpc({ call, body }: RpcCall, service: DescService): Promise<void> {
  if (!publicServices.has(service)) await valueOrThrow(call, call.authenticate(clientKindOf(service)));
  call.messageCame(body);
  await valueOrThrow(
    call,
    // Node.js's timers may fire a little before the time that `call` has left.
    call.run(async () => (typeof body === 'string' ? failed(bodyFailure(body)) : success(undefined))),
  );
}

export function clientKindOf({ typeName }: DescService): Account['kind'] {
  return typeName === CheckoutService.typeName ? 'checkout' : 'merchant';
}

export const routerOptions: ConnectRouterOptions = {
  readMaxBytes: messageBytesMax,
  writeMaxBytes: responseBytesMax,
  // A response is below a kilobyte: compressing it costs more than it saves.
  compressMinBytes: messageBytesMax,
  requestGate: (context) => authenticateRpc(rpcCallOf(context), context.service),
};

export function routesOf(services: readonly RpcService[]): (router: ConnectRouter) => void {
  return (router) => {
    for (const { descriptor, implementation } of services)
      router.service(descriptor, implementation as Partial<ServiceImpl<DescService>>);
  };
}

const parsers = { 'grpc-timeout': parseGrpcTimeout, 'connect-timeout-ms': parseConnectTimeout };

/**
 * Takes the client's time limit, in milliseconds, out of the headers: the call keeps it, and Connect, which would set a timer of
 * its own that fires at once above 2^31-1 ms, does not see it. A malformed one is left for Connect to reject.
 */
export function takeTimeout(headers: IncomingHttpHeaders): number | undefined {
  for (const [name, parse] of Object.entries(parsers)) {
    if (!(name in headers)) continue;
    const { timeoutMs } = parse(headers[name]?.toString() ?? null, Number.MAX_SAFE_INTEGER);
    if (timeoutMs === undefined) continue;
    delete headers[name];
    return timeoutMs;
  }
  return undefined;
}
