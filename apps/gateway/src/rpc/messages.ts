import {
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import type {
  RecordPaymentResponseSchema,
  ResolvePaymentLinkResponseSchema,
} from '@gateway/contract/gateway/v1/checkout_service_pb';
import {
  type CancelOrderRequestSchema,
  type CreateOrderRequest,
  type CreateOrderResponseSchema,
  type GetOrderRequestSchema,
  type ListOrdersRequest,
  type OrderRecordSchema,
  OrderStatus,
  ServiceType,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@gateway/domain/failure';
import type { MerchantMode } from '@gateway/domain/merchant';
import { NumberText, parseAmount } from '@gateway/domain/money';
import { type Order, orderStatuses } from '@gateway/domain/order';
import { serviceTypes } from '@gateway/domain/order-fields';
import type { LinkedOrder } from '@gateway/domain/order-store';
import type { OrderInput } from '@gateway/domain/parse-order';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { failed, type Result, success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { parseOrderJson } from '../order-json.ts';
import type { OrderKey } from '../orders/find-order.ts';
import type { ListInput } from '../orders/list-orders.ts';
import { orderRecord, orderResponse, returnLink } from '../orders/order-response.ts';
import type { RpcCall } from './context.ts';

type Init<Schema extends DescMessage> = Omit<MessageInitShape<Schema>, '$typeName' | '$unknown'>;

export function orderMessage(order: Order, baseUrl: BaseUrl) {
  const response = orderResponse(order, baseUrl);
  return {
    serviceOrderId: BigInt(response.service_order_id),
    createdAt: response.created_at,
    orderId: response.order_id,
    orderStatus: OrderStatus[response.order_status],
    orderToken: response.order_token,
    paymentLink: response.payment_link,
  } satisfies Init<typeof CreateOrderResponseSchema>;
}

export function recordMessage(order: Order, mode: MerchantMode, baseUrl: BaseUrl) {
  const record = orderRecord(order, mode, baseUrl);
  return {
    ...orderMessage(order, baseUrl),
    mode,
    orderAmount: record.order_amount,
    orderCurrency: record.order_currency,
    orderNote: record.order_note,
    serviceType: ServiceType[record.service_type],
    orderExpiresAt: record.order_expires_at,
    paidAt: record.paid_at,
    paymentId: record.payment_id,
    cancelledAt: record.cancelled_at,
  } satisfies Init<typeof OrderRecordSchema>;
}

// Of an order's record, Protobuf takes the fields that the message has.

export function paymentLinkMessage(
  deps: GatewayDeps,
  link: LinkedOrder,
): Init<typeof ResolvePaymentLinkResponseSchema> {
  const { order, merchant } = link;
  const record = recordMessage(order, merchant.mode, deps.baseUrl());
  return { ...record, merchantName: merchant.name, returnUrl: returnLink(deps, link) };
}

export function paymentMessage(deps: GatewayDeps, link: LinkedOrder): Init<typeof RecordPaymentResponseSchema> {
  const { paymentId, paidAt, ...record } = recordMessage(link.order, link.merchant.mode, deps.baseUrl());
  if (paymentId === undefined || paidAt === undefined) throw new Error('a paid order has no payment');
  return { ...record, paymentId, paidAt, returnUrl: returnLink(deps, link) };
}

/** The order in a message, or in its JSON. Fields that are not set stay undefined; the amount of a message is a double. */
export function readOrderInput(message: CreateOrderRequest, rpcCall: RpcCall): Result<OrderInput, Failure> {
  if (rpcCall.isJson) return parseJson(rpcCall);
  return success({
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
    order_expires_at: message.orderExpiresAt,
  } satisfies Required<OrderInput>);
}

/** Reads the message of a call, or of its JSON. */
export function readMessage<Schema extends DescMessage>(schema: Schema) {
  return (message: MessageShape<Schema>, rpcCall: RpcCall): Result<MessageShape<Schema>, Failure> => {
    if (!rpcCall.isJson) return success(message);
    const json = parseJson(rpcCall);
    if (!json.ok) return json;
    try {
      const { order_amount: amount, ...others } = json.value;
      const value = amount === undefined ? others : { ...others, order_amount: exactDouble(amount) };
      return success(fromJson(schema, value as JsonValue, { ignoreUnknownFields: true }));
    } catch {
      return failed({ kind: 'malformed_json', reason: `The body is not a ${schema.name}.` });
    }
  };
}

/** The double of an amount's digits. What no order can cost becomes `NaN`, which equals no amount: rounded, it might. */
function exactDouble(amount: unknown): number | string {
  const isExact = amount instanceof NumberText && parseAmount(amount.text).ok;
  return isExact ? Number(amount.text) : 'NaN';
}

export function readOrderKey<Schema extends typeof GetOrderRequestSchema | typeof CancelOrderRequestSchema>(
  schema: Schema,
) {
  const read = readMessage(schema);
  return (message: MessageShape<Schema>, rpcCall: RpcCall): Result<OrderKey, Failure> => {
    const request = read(message, rpcCall);
    if (!request.ok) return request;
    const { order } = request.value;
    if (order.case === 'orderId') return success({ by: 'order_id', orderId: order.value });
    if (order.case === 'serviceOrderId') return success({ by: 'service_order_id', serviceOrderId: order.value });
    const missing = { field: 'order_id', code: 'missing', message: 'or service_order_id is required' } as const;
    return failed({ kind: 'invalid_order', errors: [missing] });
  };
}

/** The parameters of a list. A status that this version does not know is passed on, to be rejected: protobuf's JSON drops it. */
export function readListInput(message: ListOrdersRequest, rpcCall: RpcCall): Result<ListInput, Failure> {
  if (rpcCall.isJson) {
    const json = parseJson(rpcCall);
    // In protobuf's JSON null is the same as absent.
    return json.ok
      ? success(Object.fromEntries(Object.entries(json.value).filter(([, value]) => value !== null)))
      : json;
  }
  const { status, createdFrom, createdTo, limit, cursor } = message;
  return success({
    status: status === undefined ? undefined : (orderStatuses.find((name) => OrderStatus[name] === status) ?? status),
    created_from: createdFrom,
    created_to: createdTo,
    limit,
    cursor,
  });
}

function parseJson({ body }: RpcCall): Result<OrderInput, Failure> {
  const json = parseOrderJson(typeof body === 'string' ? new Uint8Array() : body);
  return json.ok ? json : failed({ kind: 'malformed_json', reason: json.failure });
}

/** The enum's bare word. A number that this version does not know is passed on, to be rejected as a value. */
function serviceTypeOf(value: ServiceType | undefined): string | undefined {
  if (value === undefined || value === ServiceType.SERVICE_TYPE_UNSPECIFIED) return undefined;
  return serviceTypes.find((name) => ServiceType[name] === value) ?? String(value);
}
