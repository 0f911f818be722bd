import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  type HandlerContext,
} from '@connectrpc/connect';
import {
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  OrderService,
  OrderStatus,
  ServiceType,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@gateway/domain/failure';
import { orderFieldNames, serviceTypes } from '@gateway/domain/order-fields';
import type { OrderInput } from '@gateway/domain/parse-order';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Authenticate } from '../authenticate.ts';
import { type Caller, type CreateOrderDeps, createOrder } from '../create-order.ts';
import { parseOrderJson } from '../http/strict-json.ts';
import { callTimeoutMs, messageBytesMax } from '../limits.ts';
import type { CallRecord, Door, Log } from '../log.ts';
import { orderAnswer } from '../order-answer.ts';
import { requestIdOf } from '../request-id.ts';
import { connectErrorOf } from './connect-error.ts';

/** What both doors need. */
export interface GatewayDeps extends CreateOrderDeps {
  readonly authenticate: Authenticate;
  readonly baseUrl: () => BaseUrl;
  readonly log: Log;
}

interface Call {
  readonly requestId: string;
  readonly startedAt: number;
  caller: Caller | undefined;
  code: CallRecord['code'];
}

/** The bytes of a message in JSON, where a door sets them aside to be read as strictly as on `POST /order`. */
export const jsonBodyKey = createContextKey<Uint8Array | undefined>(undefined, { description: 'the JSON body' });

const callKey = createContextKey<Call | undefined>(undefined, { description: 'the call' });

/** The options of every Connect router that serves the service: credentials are checked before a message is read. */
export function orderServiceOptions(deps: GatewayDeps): ConnectRouterOptions {
  return {
    readMaxBytes: messageBytesMax,
    writeMaxBytes: messageBytesMax,
    // An answer is below a kilobyte: compressing it costs more than it saves.
    compressMinBytes: messageBytesMax,
    requestGate: (context) => admit(deps, context),
  };
}

/** The methods of the service, for any Connect router. */
export function orderServiceRoutes(deps: GatewayDeps): (router: ConnectRouter) => void {
  return (router) => {
    router.service(OrderService, {
      async createOrder(request, context) {
        const { call, caller } = admitted(context);
        const timeoutMs = Math.min(context.timeoutMs() ?? callTimeoutMs, callTimeoutMs);
        const input = readInput(request, context.values.get(jsonBodyKey));
        if (!input.ok) throw refused(call, input.failure);
        const created = await createOrder(deps, caller, input.value, timeoutMs).catch((error: unknown) => {
          throw faulted(deps, call, error);
        });
        if (!created.ok) throw refused(call, created.failure);
        const { order, replayed } = created.value;
        call.code = replayed ? 'replayed' : 'created';
        if (replayed) context.responseHeader.set('idempotent-replayed', 'true');
        const answer = orderAnswer(order, deps.baseUrl());
        return {
          serviceOrderId: BigInt(answer.service_order_id),
          createdAt: answer.created_at,
          orderId: answer.order_id,
          orderStatus: OrderStatus[answer.order_status],
          orderToken: answer.order_token,
          paymentLink: answer.payment_link,
        };
      },
    });
  };
}

async function admit(deps: GatewayDeps, context: HandlerContext): Promise<void> {
  const requestId = requestIdOf(context.requestHeader.get('x-request-id'), deps.randomBytes);
  const call: Call = { requestId, startedAt: performance.now(), caller: undefined, code: 'cancelled' };
  context.values.set(callKey, call);
  context.responseHeader.set('x-request-id', requestId);
  // Connect aborts the signal when a call ends, however it ends: the one place that sees every call once.
  context.signal.addEventListener('abort', () => logCall(deps.log, context.protocolName, call), { once: true });
  const clientSecret = context.requestHeader.get('x-client-secret') ?? undefined;
  const credentials = { clientId: context.requestHeader.get('x-client-id') ?? undefined, clientSecret };
  const merchant = await deps.authenticate(credentials).catch((error: unknown) => {
    throw faulted(deps, call, error);
  });
  if (!merchant.ok) throw refused(call, merchant.failure);
  call.caller = { merchant: merchant.value, clientSecret: clientSecret ?? '' };
}

function admitted(context: HandlerContext): { call: Call; caller: Caller } {
  const call = context.values.get(callKey);
  if (call?.caller === undefined) throw new Error('a call came past the gate');
  return { call, caller: call.caller };
}

function refused(call: Call, failure: Failure) {
  call.code = failure.kind;
  return connectErrorOf(failure, call.requestId);
}

function faulted(deps: GatewayDeps, call: Call, error: unknown) {
  deps.log.fault('a call failed', error, { request_id: call.requestId });
  return refused(call, { kind: 'internal' });
}

function logCall(log: Log, protocolName: string, call: Call): void {
  log.call({
    request_id: call.requestId,
    door: protocolName as Door,
    merchant_id: call.caller?.merchant.id,
    code: call.code,
    duration_ms: performance.now() - call.startedAt,
  });
}

function readInput(message: CreateOrderRequest, jsonBody: Uint8Array | undefined): Result<OrderInput, Failure> {
  if (jsonBody === undefined) return success(orderInputOf(message));
  const input = parseOrderJson(jsonBody);
  return input.ok ? input : failed({ kind: 'malformed_json', reason: input.failure });
}

/** The name of each order field in a message, beside its name on the wire. */
const messageFields = orderFieldNames.map((name) => {
  const field = CreateOrderRequestSchema.fields.find((field) => field.name === name);
  if (field === undefined) throw new Error(`the proto has no field ${name}`);
  return [name, field.localName as keyof CreateOrderRequest] as const;
});

/** A message as `parseOrder` takes it: fields that are not set stay undefined, the amount is a double without digits. */
export function orderInputOf(message: CreateOrderRequest): OrderInput {
  const input: Record<string, unknown> = {};
  for (const [name, localName] of messageFields) input[name] = message[localName];
  input.service_type = serviceTypeOf(message.serviceType);
  return input;
}

/** The enum's bare word. A number that this version of the service does not know is told as it is, and refused. */
function serviceTypeOf(value: ServiceType | undefined): string | undefined {
  if (value === undefined || value === ServiceType.SERVICE_TYPE_UNSPECIFIED) return undefined;
  return serviceTypes.find((name) => ServiceType[name] === value) ?? String(value);
}
