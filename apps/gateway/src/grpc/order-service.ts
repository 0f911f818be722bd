import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextKey,
  type HandlerContext,
} from '@connectrpc/connect';
import {
  type CreateOrderRequest,
  GetOrderRequestSchema,
  OrderService,
  ResolvePaymentLinkRequestSchema,
  ServiceType,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@gateway/domain/failure';
import { serviceTypes } from '@gateway/domain/order-fields';
import type { OrderInput } from '@gateway/domain/parse-order';
import { failed, type Result, success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { parseOrderJson } from '../http/strict-json.ts';
import { messageBytesMax } from '../limits.ts';
import type { Door } from '../log.ts';
import { answerGetOrder, answerResolvePaymentLink, readMessage } from './lookup-calls.ts';
import {
  admitCall,
  answerCreateOrder,
  type Call,
  completeRefusal,
  logCall,
  openCall,
  timeLeftMs,
} from './order-call.ts';
import { orderMessage } from './order-message.ts';

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
        const call = admitted(context);
        const input = readInput(request, context.values.get(jsonBodyKey));
        const { order, replayed } = await answerCreateOrder(deps, call, input, timeLeftMs(call, context.timeoutMs()));
        if (replayed) context.responseHeader.set('idempotent-replayed', 'true');
        return orderMessage(order, deps.baseUrl());
      },
      getOrder(request, context) {
        const call = admitted(context);
        const message = readMessage(GetOrderRequestSchema, request, context.values.get(jsonBodyKey));
        return answerGetOrder(deps, call, message, timeLeftMs(call, context.timeoutMs()));
      },
      resolvePaymentLink(request, context) {
        const call = admitted(context);
        const message = readMessage(ResolvePaymentLinkRequestSchema, request, context.values.get(jsonBodyKey));
        const clientId = context.requestHeader.get('x-client-id');
        const timeoutMs = timeLeftMs(call, context.timeoutMs());
        return answerResolvePaymentLink(deps, call, message, { clientId, timeoutMs });
      },
    });
  };
}

async function admit(deps: GatewayDeps, context: HandlerContext): Promise<void> {
  const call = openCall(deps, context.protocolName as Door, context.requestHeader.get('x-request-id'));
  context.values.set(callKey, call);
  context.responseHeader.set('x-request-id', call.requestId);
  // Connect aborts the signal when a call ends, however it ends, and before it writes the refusal: the one place that sees
  // every call once.
  const noteEnd = () => {
    completeRefusal(call, context.signal.reason);
    logCall(deps.log, call);
  };
  // A caller that gave no time at all is refused before there is anything to listen to.
  if (context.signal.aborted) noteEnd();
  else context.signal.addEventListener('abort', noteEnd);
  const credentials = {
    clientId: context.requestHeader.get('x-client-id') ?? undefined,
    clientSecret: context.requestHeader.get('x-client-secret') ?? undefined,
  };
  await admitCall(deps, call, credentials, timeLeftMs(call, context.timeoutMs()));
}

function admitted(context: HandlerContext): Call {
  const call = context.values.get(callKey);
  if (call === undefined) throw new Error('a call came past the gate');
  return call;
}

function readInput(message: CreateOrderRequest, jsonBody: Uint8Array | undefined): Result<OrderInput, Failure> {
  if (jsonBody === undefined) return success(orderInputOf(message));
  const input = parseOrderJson(jsonBody);
  return input.ok ? input : failed({ kind: 'malformed_json', reason: input.failure });
}

/** A message as `parseOrder` takes it: fields that are not set stay undefined, the amount is a double without digits. */
export function orderInputOf(message: CreateOrderRequest): Required<OrderInput> {
  return {
    order_id: message.orderId,
    order_amount: message.orderAmount,
    order_currency: message.orderCurrency,
    order_note: message.orderNote,
    service_type: serviceTypeOf(message.serviceType),
    customer_name: message.customerName,
    customer_email: message.customerEmail,
    customer_phone: message.customerPhone,
    customer_address_line1: message.customerAddressLine1,
    customer_address_line2: message.customerAddressLine2,
    customer_address_city: message.customerAddressCity,
    customer_address_state: message.customerAddressState,
    customer_address_country: message.customerAddressCountry,
    customer_address_postal_code: message.customerAddressPostalCode,
    order_checksum: message.orderChecksum,
    return_url: message.returnUrl,
  };
}

/** The enum's bare word. A number that this version of the service does not know is told as it is, and refused. */
function serviceTypeOf(value: ServiceType | undefined): string | undefined {
  if (value === undefined || value === ServiceType.SERVICE_TYPE_UNSPECIFIED) return undefined;
  return serviceTypes.find((name) => ServiceType[name] === value) ?? String(value);
}
