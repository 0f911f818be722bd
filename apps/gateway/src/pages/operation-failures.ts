import type { FailureCode } from '@gateway/domain/failure';

const everywhere = [
  ...(['body_too_large', 'rate_limited', 'overloaded', 'unavailable', 'deadline_exceeded', 'internal'] as const),
] as const;

/** What any operation with credentials can return. */
export const withCredentials = ['unauthenticated', 'permission_denied', ...everywhere] as const;

/** The errors of each operation of the JSON API, by `operationId`. */
export const jsonFailures = {
  createOrder: [
    ...(['malformed_json', 'invalid_order', 'checksum_mismatch', 'order_id_conflict'] as const),
    ...(['unsupported_media_type', 'request_timeout', ...withCredentials] as const),
  ],
  getOrder: ['not_found', 'request_timeout', ...withCredentials],
  cancelOrder: ['not_found', 'order_already_paid', 'order_expired', 'request_timeout', ...withCredentials],
  listOrders: ['invalid_request', 'request_timeout', ...withCredentials],
  listEvents: ['invalid_request', 'request_timeout', ...withCredentials],
  getPaymentPage: ['not_found', 'request_timeout', ...everywhere],
  simulatePayment: ['invalid_request', 'permission_denied', 'not_found', 'request_timeout', ...everywhere],
} as const satisfies Record<string, readonly FailureCode[]>;

export type OperationId = keyof typeof jsonFailures;

/** The errors of each method of the gRPC services. Connect's JSON has `malformed_json` as well. */
export const rpcFailures = {
  'OrderService/CreateOrder': ['invalid_order', 'checksum_mismatch', 'order_id_conflict', ...withCredentials],
  'OrderService/GetOrder': ['invalid_order', 'not_found', ...withCredentials],
  'OrderService/CancelOrder': [
    ...(['invalid_order', 'not_found', 'order_already_paid', 'order_expired', ...withCredentials] as const),
  ],
  'OrderService/ListOrders': ['invalid_request', ...withCredentials],
  'CheckoutService/ResolvePaymentLink': ['not_found', ...withCredentials],
  'CheckoutService/RecordPayment': [
    ...(['invalid_request', 'not_found', 'order_already_paid', 'order_cancelled', 'order_expired'] as const),
    ...(['payment_mismatch', ...withCredentials] as const),
  ],
} as const satisfies Record<string, readonly FailureCode[]>;

export type RpcMethod = keyof typeof rpcFailures;
