import type * as brands from '@order-gateway/contract/gateway/v1/brand_service_pb';
import type { ClientSecret } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import type * as orders from '@order-gateway/contract/gateway/v1/order_pb';
import type * as orderService from '@order-gateway/contract/gateway/v1/order_service_pb';
import type * as webhooks from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import type { MerchantMode } from '@order-gateway/domain/accounts';
import type * as domainEvents from '@order-gateway/domain/events';
import type { FailureCode } from '@order-gateway/domain/failure';
import type * as domainOrders from '@order-gateway/domain/orders';
import type * as fieldRules from '@order-gateway/domain/requests';
import { expectTypeOf, test } from 'vitest';
import type {
  Brand,
  BrandChange,
  CreatedOrder,
  DeliveryFilter,
  Dispute,
  DisputeStatus,
  ErrorCode,
  EventType,
  FieldErrorCode,
  ManualPayment,
  Mode,
  NewClientSecret,
  NewOrder,
  NewRefund,
  NewWebhookEndpoint,
  Order,
  OrderFilter,
  OrderStatus,
  PingResult,
  Refund,
  RefundStatus,
  RefusalCode,
  RefusedPayment,
  ServiceType,
  SignedWebhookEndpoint,
  WebhookDelivery,
  WebhookEndpointChange,
} from './types.ts';

// The compiler checks these expectations. At run time, the tests do nothing.

/** Converts a name such as `createdAt` to `created_at`, the field's name in the contract and in JSON. */
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** The names of a message's fields, except those in `Omitted`. */
type FieldsOf<Message, Omitted extends string = never> = Exclude<
  SnakeCase<Exclude<keyof Message & string, '$typeName' | '$unknown'>>,
  Omitted
>;

test('orders and brands have the members that the contract has as fields', () => {
  expectTypeOf<keyof CreatedOrder>().toEqualTypeOf<FieldsOf<orderService.CreateOrderResponse>>();
  expectTypeOf<keyof Order>().toEqualTypeOf<FieldsOf<orders.Order>>();
  expectTypeOf<keyof RefusedPayment>().toEqualTypeOf<FieldsOf<orders.RefusedPayment>>();
  expectTypeOf<keyof NewOrder>().toEqualTypeOf<FieldsOf<orderService.CreateOrderRequest, 'order_checksum'>>();
  expectTypeOf<SnakeCase<keyof OrderFilter>>().toEqualTypeOf<FieldsOf<orderService.ListOrdersRequest, 'cursor'>>();
  expectTypeOf<keyof ManualPayment>().toEqualTypeOf<FieldsOf<orderService.RecordManualPaymentRequest, 'order'>>();
  expectTypeOf<keyof NewRefund>().toEqualTypeOf<FieldsOf<orderService.CreateRefundRequest, 'order'>>();
  expectTypeOf<keyof Refund>().toEqualTypeOf<FieldsOf<orders.Refund>>();
  expectTypeOf<keyof Dispute>().toEqualTypeOf<FieldsOf<orders.Dispute>>();
  expectTypeOf<keyof Brand>().toEqualTypeOf<FieldsOf<brands.Brand>>();
  expectTypeOf<keyof BrandChange>().toEqualTypeOf<FieldsOf<brands.UpdateBrandRequest>>();
  expectTypeOf<RefusalCode>().toEqualTypeOf<domainOrders.RefusalCode>();
});

test('endpoints and secrets have the members that the contract has as fields', () => {
  expectTypeOf<keyof NewWebhookEndpoint>().toEqualTypeOf<FieldsOf<webhooks.CreateWebhookEndpointRequest>>();
  expectTypeOf<keyof WebhookEndpointChange>().toEqualTypeOf<FieldsOf<webhooks.UpdateWebhookEndpointRequest, 'id'>>();
  expectTypeOf<keyof SignedWebhookEndpoint>().toEqualTypeOf<FieldsOf<webhooks.WebhookEndpoint>>();
  expectTypeOf<keyof WebhookDelivery>().toEqualTypeOf<FieldsOf<webhooks.WebhookDelivery>>();
  expectTypeOf<SnakeCase<keyof DeliveryFilter>>().toEqualTypeOf<
    FieldsOf<webhooks.ListWebhookDeliveriesRequest, 'id' | 'cursor'>
  >();
  expectTypeOf<keyof PingResult>().toEqualTypeOf<FieldsOf<webhooks.PingWebhookEndpointResponse>>();
  expectTypeOf<keyof NewClientSecret>().toEqualTypeOf<FieldsOf<ClientSecret>>();
});

test('statuses and service types have the values of the contract', () => {
  expectTypeOf<OrderStatus | 'ORDER_STATUS_UNSPECIFIED'>().toEqualTypeOf<keyof typeof orders.OrderStatus>();
  expectTypeOf<RefundStatus | 'REFUND_STATUS_UNSPECIFIED'>().toEqualTypeOf<keyof typeof orders.RefundStatus>();
  expectTypeOf<DisputeStatus | 'DISPUTE_STATUS_UNSPECIFIED'>().toEqualTypeOf<keyof typeof orders.DisputeStatus>();
  expectTypeOf<ServiceType | 'SERVICE_TYPE_UNSPECIFIED'>().toEqualTypeOf<keyof typeof orders.ServiceType>();
});

test('codes and other enumerations have the values of the domain', () => {
  // Only CheckoutService returns the codes that are excluded.
  type CheckoutCode = 'payment_mismatch' | 'payment_attempt_ended';
  expectTypeOf<ErrorCode>().toEqualTypeOf<Exclude<FailureCode, CheckoutCode>>();
  expectTypeOf<FieldErrorCode>().toEqualTypeOf<fieldRules.FieldErrorCode>();
  expectTypeOf<OrderStatus>().toEqualTypeOf<domainOrders.OrderStatus>();
  expectTypeOf<ServiceType>().toEqualTypeOf<domainOrders.ServiceType>();
  expectTypeOf<EventType>().toEqualTypeOf<domainEvents.EventType>();
  expectTypeOf<Mode>().toEqualTypeOf<MerchantMode>();
  expectTypeOf<keyof NewOrder | 'order_checksum'>().toEqualTypeOf<domainOrders.RequestFieldName>();
});
