import type { DescMethod, DescService, Message } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import type { Failure } from '@order-gateway/domain/failure';
import { type Result, success } from '@order-gateway/domain/result';
import type { Call } from '../calls/call.ts';
import type { Members } from '../calls/operation.ts';
import { type Calls, perform } from '../calls/receive.ts';
import { messageBytesMax, messageBytesMaxOfAny, responseBytesMax } from '../limits.ts';
import type { WatchEvents } from '../operations/events.ts';
import { connectErrorOf } from './errors.ts';
import { memberReader, messageBuilder } from './messages.ts';
import type { RpcMethod } from './methods.ts';

/** A received call, which Connect passes to its method. */
export interface RpcCall {
  readonly call: Call;
  /** The reason for rejecting the call, or the members of its message; absent if only Connect can read the message. */
  readonly request: Result<Members, Failure> | undefined;
}

export const rpcCallKey = createContextKey<RpcCall | undefined>(undefined, { description: 'the call' });

function rpcCallOf({ values }: Pick<HandlerContext, 'values'>): RpcCall {
  const rpcCall = values.get(rpcCallKey);
  if (rpcCall === undefined) throw new Error('a call without its context');
  return rpcCall;
}

export const routerOptions: ConnectRouterOptions = {
  // `receive` has already applied the method's own limit.
  readMaxBytes: messageBytesMaxOfAny,
  writeMaxBytes: responseBytesMax,
  // Most responses are smaller than a kilobyte, and compressing those would cost more than it saves.
  compressMinBytes: messageBytesMax,
  // Runs before Connect reads the body.
  async requestGate(context) {
    const { call, request } = rpcCallOf(context);
    if (request?.ok === false) throw connectErrorOf(call.fail(request.failure), call.requestId);
  },
};

/**
 * Adds the services of the methods to a Connect router. `streaming` contains the implementations of streaming methods.
 */
export function addMethods(
  router: ConnectRouter,
  methods: ReadonlyMap<DescMethod, RpcMethod>,
  streaming: ReadonlyMap<DescMethod, unknown> = new Map(),
): void {
  const services = new Map<DescService, Record<string, unknown>>();
  for (const [{ parent, localName }, implementation] of streaming)
    services.set(parent, { [localName]: implementation });
  for (const [{ parent, localName }, method] of methods) {
    services.set(parent, { ...services.get(parent), [localName]: implementationOf(method) });
  }
  for (const [service, implementation] of services) {
    router.service(service, implementation as Partial<ServiceImpl<DescService>>);
  }
}

function implementationOf({ operation, readMessage, buildMessage }: RpcMethod) {
  return async (message: Message, context: HandlerContext): Promise<Message> => {
    const { call, request = success(readMessage(message)) } = rpcCallOf(context);
    return perform<Message>(call, operation, request, {
      respond({ body, outcome, preferenceApplied }) {
        if (preferenceApplied !== undefined) context.responseHeader.set('preference-applied', preferenceApplied);
        if (outcome === 'replayed') context.responseHeader.set('idempotent-replayed', 'true');
        return buildMessage(body);
      },
      reject(failure) {
        throw connectErrorOf(call.fail(failure), call.requestId);
      },
    });
  };
}

/**
 * Implements the method that responds with a stream. Before each message, Connect waits until the client can take it.
 */
export function watchEventsImplementation(
  { authenticate, callTimeoutMs }: Pick<Calls, 'authenticate' | 'callTimeoutMs'>,
  watchEvents: WatchEvents,
) {
  const { method } = watchEvents;
  const [readMessage, buildMessage] = [memberReader(method.input), messageBuilder(method.output)];
  return async function* (message: Message, context: HandlerContext): AsyncGenerator<Message, void> {
    const { call, request = success(readMessage(message)) } = rpcCallOf(context);
    if (!request.ok) throw connectErrorOf(call.fail(request.failure), call.requestId);
    const { account, signal } = call.beginStream();
    if (account?.kind !== 'merchant') throw new Error('the call was not received');
    const watcher = {
      account,
      signal,
      authenticate: () => authenticate(call.credentials, callTimeoutMs),
      readTimeoutMs: callTimeoutMs,
    };
    for await (const result of watchEvents.handle(watcher, request.value)) {
      if (!result.ok) throw connectErrorOf(call.fail(result.failure), call.requestId);
      yield buildMessage(result.value);
    }
  };
}
