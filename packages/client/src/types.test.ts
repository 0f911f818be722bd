import { BrandSchema, UpdateBrandRequestSchema } from '@order-gateway/contract/gateway/v1/brand_service_pb';
import { ClientSecretSchema } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import {
  OrderSchema,
  OrderStatusSchema,
  RefusedPaymentSchema,
  ServiceTypeSchema,
} from '@order-gateway/contract/gateway/v1/order_pb';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  ListOrdersRequestSchema,
} from '@order-gateway/contract/gateway/v1/order_service_pb';
import {
  CreateWebhookEndpointRequestSchema,
  ListWebhookDeliveriesRequestSchema,
  PingWebhookEndpointResponseSchema,
  UpdateWebhookEndpointRequestSchema,
  WebhookDeliverySchema,
  WebhookEndpointSchema,
} from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import type { MerchantMode } from '@order-gateway/domain/accounts';
import type * as orderStates from '@order-gateway/domain/events';
import type { FailureCode } from '@order-gateway/domain/failure';
import type * as order from '@order-gateway/domain/orders';
import type * as orderFields from '@order-gateway/domain/orders';
import type * as fieldRules from '@order-gateway/domain/requests';
import { expect, expectTypeOf, test } from 'vitest';
import type {
  Brand,
  BrandChange,
  CreatedOrder,
  DeliveryFilter,
  ErrorCode,
  EventType,
  FieldErrorCode,
  Mode,
  NewClientSecret,
  NewOrder,
  NewWebhookEndpoint,
  Order,
  OrderFilter,
  OrderStatus,
  PingResult,
  RefusalCode,
  RefusedPayment,
  ServiceType,
  SignedWebhookEndpoint,
  WebhookDelivery,
  WebhookEndpointChange,
} from './types.ts';

const createdOrder: Required<CreatedOrder> = {
  service_order_id: 1,
  created_at: '',
  order_id: '',
  order_status: 'UN_PAID',
  order_token: '',
  payment_link: '',
};

const refusedPayment: Required<RefusedPayment> = {
  payment_id: '',
  amount: 10,
  currency: '',
  paid_at: '',
  code: 'payment_mismatch',
  refused_at: '',
};

const storedOrder: Required<Order> = {
  ...createdOrder,
  mode: 'test',
  order_amount: 10,
  order_currency: '',
  order_note: '',
  service_type: 'DIGITAL',
  order_expires_at: '',
  paid_at: '',
  payment_id: '',
  cancelled_at: '',
  payment_in_progress_until: '',
  refused_payments: [refusedPayment],
  metadata: {},
};

const sampleOrder: Required<NewOrder> = {
  order_id: '',
  order_amount: 10,
  order_currency: '',
  order_note: '',
  service_type: 'DIGITAL',
  customer_name: '',
  customer_email: '',
  customer_phone: '',
  customer_address_line1: '',
  customer_address_line2: '',
  customer_address_city: '',
  customer_address_state: '',
  customer_address_country: '',
  customer_address_postal_code: '',
  return_url: '',
  customer_locale: '',
  order_expires_at: '',
  metadata: {},
};

const filter: Required<OrderFilter> = { status: 'PAID', createdFrom: '', createdTo: '', metadata: {}, limit: 1 };

const newEndpoint: Required<NewWebhookEndpoint> = { url: '', event_types: [] };

const change: Required<WebhookEndpointChange> = { ...newEndpoint, status: 'enabled' };

const endpoint: Required<SignedWebhookEndpoint> = {
  ...{ id: '', url: '', event_types: ['*'], status: 'enabled', created_at: '', signs_returns: true },
  ...{ failing_since: '', disabled_at: '', signing_secret: '' },
};

const delivery: Required<WebhookDelivery> = {
  ...{ event_id: '', type: 'order.paid', created_at: '', status: 'failed', attempts: 1, last_attempt_at: '' },
  ...{ last_result: '', next_attempt_at: '', delivered_at: '' },
};

const deliveryFilter: Required<DeliveryFilter> = { status: 'pending', limit: 1 };

const ping: Required<PingResult> = { delivered: true, result: '' };

const clientSecret: Required<NewClientSecret> = { id: '', created_at: '', ends_at: '', client_secret: '' };

const brandTexts = { color: '', support_email: '', support_url: '', terms_url: '', privacy_url: '' };

const brand: Required<Brand> = { ...brandTexts, logo_url: '' };

const brandChange: Required<BrandChange> = { ...brandTexts, logo: new Uint8Array() };

const statuses: Record<OrderStatus, 0> = { UN_PAID: 0, PAID: 0, EXPIRED: 0, CANCELLED: 0 };

const serviceTypes: Record<ServiceType, 0> = { DIGITAL: 0, PHYSICAL_GOODS: 0 };

function namesOf({ fields }: { readonly fields: readonly { readonly name: string }[] }): string[] {
  return fields.map(({ name }) => name).sort();
}

test('the fields are those of the protobuf contract', () => {
  expect(Object.keys(createdOrder).sort()).toEqual(namesOf(CreateOrderResponseSchema));
  expect(Object.keys(storedOrder).sort()).toEqual(namesOf(OrderSchema));
  expect(Object.keys(refusedPayment).sort()).toEqual(namesOf(RefusedPaymentSchema));
  expect(Object.keys(brand).sort()).toEqual(namesOf(BrandSchema));
  expect(Object.keys(brandChange).sort()).toEqual(namesOf(UpdateBrandRequestSchema));
  expectTypeOf<RefusalCode>().toEqualTypeOf<order.RefusalCode>();
  expect([...Object.keys(sampleOrder), 'order_checksum'].sort()).toEqual(namesOf(CreateOrderRequestSchema));
  const parameters = Object.keys(filter).map((name) => name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`));
  expect([...parameters, 'cursor'].sort()).toEqual(namesOf(ListOrdersRequestSchema));
});

test('the members of endpoints and secrets are those of the protobuf contract', () => {
  const members = (value: object, ...others: readonly string[]) => [...Object.keys(value), ...others].sort();
  expect(members(newEndpoint)).toEqual(namesOf(CreateWebhookEndpointRequestSchema));
  expect(members(change, 'id')).toEqual(namesOf(UpdateWebhookEndpointRequestSchema));
  expect(members(endpoint)).toEqual(namesOf(WebhookEndpointSchema));
  expect(members(delivery)).toEqual(namesOf(WebhookDeliverySchema));
  expect(members(deliveryFilter, 'id', 'cursor')).toEqual(namesOf(ListWebhookDeliveriesRequestSchema));
  expect(members(ping)).toEqual(namesOf(PingWebhookEndpointResponseSchema));
  expect(members(clientSecret)).toEqual(namesOf(ClientSecretSchema));
});

test('the statuses and service types are those of the protobuf contract', () => {
  const [, ...statusValues] = OrderStatusSchema.values.map(({ name }) => name);
  expect(Object.keys(statuses)).toEqual(statusValues);
  const [, ...serviceTypeValues] = ServiceTypeSchema.values.map(({ name }) => name);
  expect(Object.keys(serviceTypes)).toEqual(serviceTypeValues);
});

// Checked by tsc: nothing happens when it runs.
test('the values are those of the gateway', () => {
  // Only CheckoutService returns these.
  expectTypeOf<ErrorCode>().toEqualTypeOf<Exclude<FailureCode, 'payment_mismatch' | 'payment_id_conflict'>>();
  expectTypeOf<FieldErrorCode>().toEqualTypeOf<fieldRules.FieldErrorCode>();
  expectTypeOf<OrderStatus>().toEqualTypeOf<order.OrderStatus>();
  expectTypeOf<ServiceType>().toEqualTypeOf<orderFields.ServiceType>();
  expectTypeOf<EventType>().toEqualTypeOf<orderStates.EventType>();
  expectTypeOf<Mode>().toEqualTypeOf<MerchantMode>();
  expectTypeOf<keyof NewOrder | 'order_checksum'>().toEqualTypeOf<orderFields.RequestFieldName>();
});
