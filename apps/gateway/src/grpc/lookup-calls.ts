import {
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import {
  type GetOrderRequest,
  type GetOrderResponseSchema,
  OrderStatus,
  type ResolvePaymentLinkResponseSchema,
  ServiceType,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@gateway/domain/failure';
import type { MerchantId } from '@gateway/domain/merchant';
import { formatAmount } from '@gateway/domain/money';
import { formatCreatedAt } from '@gateway/domain/order';
import { failed, type Result, success } from '@gateway/domain/result';
import { findOrder, findPaymentLink, type OrderKey } from '../find-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { parseOrderJson } from '../http/strict-json.ts';
import { type Call, faulted, refused, tell } from './order-call.ts';
import { orderMessage } from './order-message.ts';

type Init<Schema extends DescMessage> = Omit<MessageInitShape<Schema>, '$typeName' | '$unknown'>;

/** The message of a call, from its JSON where that was set aside. */
export function readMessage<Schema extends DescMessage>(
  schema: Schema,
  message: MessageShape<Schema>,
  jsonBody: Uint8Array | undefined,
): Result<MessageShape<Schema>, Failure> {
  if (jsonBody === undefined) return success(message);
  const json = parseOrderJson(jsonBody);
  if (!json.ok) return failed({ kind: 'malformed_json', reason: json.failure });
  try {
    return success(fromJson(schema, { ...json.value } as JsonValue, { ignoreUnknownFields: true }));
  } catch {
    return failed({ kind: 'malformed_json', reason: `The body is not a ${schema.name}.` });
  }
}

/** One of the caller's own orders. Throws the refusal. */
export async function answerGetOrder(
  deps: GatewayDeps,
  call: Call,
  request: Result<GetOrderRequest, Failure>,
  timeoutMs: number,
): Promise<Init<typeof GetOrderResponseSchema>> {
  const { id } = merchantOf(call);
  const key = request.ok ? orderKeyOf(request.value) : request;
  if (!key.ok) throw refused(call, key.failure);
  const order = await settled(deps, call, findOrder(deps, id, key.value, timeoutMs));
  tell(call, 'ok');
  return orderMessage(order, deps.baseUrl());
}

/** What a payment link stands for, to those who may ask; others get the answer of a link that does not exist. */
export async function answerResolvePaymentLink(
  deps: GatewayDeps,
  call: Call,
  request: Result<{ readonly orderToken: string }, Failure>,
  { clientId, timeoutMs }: { readonly clientId: string | null; readonly timeoutMs: number },
): Promise<Init<typeof ResolvePaymentLinkResponseSchema>> {
  const { id } = merchantOf(call);
  if (!request.ok) throw refused(call, request.failure);
  const link = await settled(deps, call, findPaymentLink(deps, request.value.orderToken, timeoutMs));
  const { order, merchantName } = link;
  if (order.merchantId !== id && !deps.checkoutClients.has(clientId ?? ''))
    throw refused(call, { kind: 'not_found', unknown: 'payment_link' });
  const { fields } = order;
  tell(call, 'ok');
  return {
    merchantName,
    serviceOrderId: BigInt(order.serviceOrderId),
    orderId: fields.order_id,
    orderAmount: Number(formatAmount(fields.order_amount)),
    orderCurrency: fields.order_currency,
    orderNote: fields.order_note,
    serviceType: ServiceType[fields.service_type],
    orderStatus: OrderStatus[order.orderStatus],
    createdAt: formatCreatedAt(order.createdAtMs),
    returnUrl: fields.return_url,
  };
}

function merchantOf(call: Call): { readonly id: MerchantId } {
  if (call.caller === undefined) throw new Error('a call came past its admission');
  return call.caller.merchant;
}

async function settled<Value>(deps: GatewayDeps, call: Call, finding: Promise<Result<Value, Failure>>): Promise<Value> {
  const found = await finding.catch((error: unknown) => {
    throw faulted(deps, call, error);
  });
  if (!found.ok) throw refused(call, found.failure);
  return found.value;
}

function orderKeyOf({ order }: GetOrderRequest): Result<OrderKey, Failure> {
  switch (order.case) {
    case 'orderId':
      return success({ by: 'order_id', orderId: order.value });
    case 'serviceOrderId':
      return success({ by: 'service_order_id', serviceOrderId: order.value });
    default: {
      const missing = { field: 'order_id', code: 'missing', message: 'or service_order_id is required' } as const;
      return failed({ kind: 'invalid_order', errors: [missing] });
    }
  }
}
