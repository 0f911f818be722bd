import type { Failure, FailureCode } from '@order-gateway/domain/failure';

interface CatalogueEntry {
  /** A short summary that is always the same for a code (RFC 9457 `title`). */
  readonly title: string;
  /** The status of a JSON response. Connect derives its HTTP status from `grpcStatus` instead. */
  readonly httpStatus: number;
  /**
   * The name of the gRPC status; `null` for an error of HTTP or of the syntax of a body. If an RPC fails with such an
   * error, its status is INVALID_ARGUMENT.
   */
  readonly grpcStatus: string | null;
  /** When the error is returned and what the caller can do about it. */
  readonly when: string;
  /** The advice for a request that may have created an order, if it differs. */
  readonly whenCreating?: string;
}

const sendOrderAgain =
  'The order may have been created. Send the same order_id again: it never creates a second order.';

/**
 * Every error that the API returns, by error code. The responses of all protocols, the reference and the list of errors
 * in the documentation are derived from this catalogue.
 */
export const errorCatalogue = {
  malformed_request: {
    title: 'Malformed HTTP request',
    httpStatus: 400,
    grpcStatus: null,
    when: 'The request line, a header or the framing of the body is not valid HTTP/1.1, or the request does not have exactly one valid Host header.',
  },
  malformed_json: {
    title: 'Malformed request',
    httpStatus: 400,
    grpcStatus: null,
    when: 'The body is not a single JSON object in UTF-8, it has a duplicate key, or the RPC message is not valid Protobuf. Correct the body.',
  },
  invalid_order: {
    title: 'The order has invalid fields',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: 'One or more fields are missing or invalid. The error lists all of them. Correct them and send the order again.',
  },
  unauthenticated: {
    title: 'Invalid credentials',
    httpStatus: 401,
    grpcStatus: 'UNAUTHENTICATED',
    when: 'The credentials in x-client-id and x-client-secret are missing or invalid.',
  },
  permission_denied: {
    title: 'Permission denied',
    httpStatus: 403,
    grpcStatus: 'PERMISSION_DENIED',
    when: 'The account is of the wrong kind, the operator has reserved the operation, or a form was sent from another site. Merchants cannot use CheckoutService, and checkout systems can use only CheckoutService.',
  },
  invalid_request: {
    title: 'The request has invalid parameters',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: 'One or more parameters that are not fields of an order are invalid. The error lists all of them. Correct them.',
  },
  checksum_mismatch: {
    title: 'The order_checksum does not match',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: 'The v1= checksum does not match the canonical text in this response. Compare that text with yours.',
  },
  not_found: {
    title: 'Not found',
    httpStatus: 404,
    grpcStatus: 'NOT_FOUND',
    when: 'The path does not exist, or the request names an order, payment, payment link, webhook endpoint, event or client secret that does not exist.',
  },
  method_not_allowed: {
    title: 'Method not allowed',
    httpStatus: 405,
    grpcStatus: null,
    when: 'The path exists, but does not support this method. The Allow header lists the methods that it supports.',
  },
  request_timeout: {
    title: 'Request timeout',
    httpStatus: 408,
    grpcStatus: null,
    when: 'The headers or the body arrived too slowly. Send the request again on a new connection.',
  },
  order_id_conflict: {
    title: 'The order_id is used by another order',
    httpStatus: 409,
    grpcStatus: 'ALREADY_EXISTS',
    when: 'You already have an order with this order_id, which differs in the listed fields. Nothing was stored. Use a new order_id.',
  },
  payment_id_conflict: {
    title: 'The payment_id is used by another payment',
    httpStatus: 409,
    grpcStatus: 'ALREADY_EXISTS',
    when: 'You have already reported this payment_id for another order, or with another amount, currency, paid_at or paid_on. Nothing was stored, and the first report remains valid. Correct your records before you refund anything.',
  },
  payment_in_progress: {
    title: 'A payment is in progress',
    httpStatus: 409,
    grpcStatus: 'ABORTED',
    when: 'A payment of the order is in progress, so the order cannot be cancelled, claimed by another payment attempt, or marked as paid by the merchant. Wait for the time in Retry-After or RetryInfo, and send the request again. By then, the order may be paid.',
  },
  payment_attempt_ended: {
    title: 'The payment attempt has ended',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The payment attempt has ended, or the operator released its claim, so it can never claim the order again. Take no money for this attempt. To let the customer try again, start an attempt with another attempt_id.',
  },
  order_already_paid: {
    title: 'The order is paid',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The order is already paid, so it can be neither cancelled nor paid again. A second payment must be refunded.',
  },
  order_cancelled: {
    title: 'The order is cancelled',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The order is cancelled and can no longer be paid. The payment must be refunded.',
  },
  order_expired: {
    title: 'The order is expired',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The order has reached its order_expires_at. A payment that was made or reported too late must be refunded.',
  },
  payment_mismatch: {
    title: 'The payment does not match the order',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: "The payment's amount or currency differs from the order's. The payment must be refunded.",
  },
  order_not_paid: {
    title: 'The order was never paid',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'Only the payment of a PAID order can be refunded.',
  },
  refund_exceeds_payment: {
    title: 'The refund exceeds the payment',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The amount is more than what is left of the payment after its refunds, pending ones too, and its open or lost disputes. Or you have already requested 100 refunds of this order. Nothing was stored.',
  },
  refund_id_conflict: {
    title: 'The refund_id is used by another refund',
    httpStatus: 409,
    grpcStatus: 'ALREADY_EXISTS',
    when: 'The order already has a refund with this id and another amount, or a report gives it the provider_refund_id of another one. Nothing was stored. Use a new refund_id.',
  },
  refunds_not_supported: {
    title: 'The payment cannot be refunded here',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The checkout system that took the payment does not make refunds for this gateway. Refund the payment at the provider, or ask the operator.',
  },
  webhook_url_not_allowed: {
    title: 'The webhook URL is not allowed',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: 'Webhooks are sent only over https and to public addresses. Use another URL.',
  },
  too_many_endpoints: {
    title: 'There are too many webhook endpoints',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'You already have 5 webhook endpoints, which is the limit. Delete one first.',
  },
  webhook_endpoint_disabled: {
    title: 'The webhook endpoint is disabled',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'Nothing is delivered to a disabled webhook endpoint. Enable it first.',
  },
  webhooks_not_configured: {
    title: 'Webhooks are not configured',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'The gateway cannot use signing secrets, because SECRETS_KEY is not set or has changed. Ask its operator.',
  },
  too_many_client_secrets: {
    title: 'There are too many client secrets',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'You already have 5 client secrets that work, which is the limit. Revoke one first.',
  },
  last_client_secret: {
    title: 'The client secret is the last one',
    httpStatus: 409,
    grpcStatus: 'FAILED_PRECONDITION',
    when: 'No other client secret works. Create another one before you revoke this one.',
  },
  cursor_expired: {
    title: 'The cursor has expired',
    httpStatus: 410,
    grpcStatus: 'OUT_OF_RANGE',
    when: 'The event of the cursor no longer exists: it is older than 30 days, or the database was restored to a time before it. Start without a cursor, and list your orders once.',
  },
  body_too_large: {
    title: 'The body is too large',
    httpStatus: 413,
    grpcStatus: 'RESOURCE_EXHAUSTED',
    when: 'The body or message is larger than its limit: 384 KiB to change a brand, 64 KiB for everything else.',
  },
  unsupported_media_type: {
    title: 'Unsupported media type',
    httpStatus: 415,
    grpcStatus: null,
    when: 'The Content-Type is not application/json in UTF-8 (for a form, application/x-www-form-urlencoded), or the body is compressed.',
  },
  headers_too_large: {
    title: 'The headers are too large',
    httpStatus: 431,
    grpcStatus: 'RESOURCE_EXHAUSTED',
    when: 'The headers are larger than 16 KiB. Send fewer or shorter headers.',
  },
  rate_limited: {
    title: 'Too many requests',
    httpStatus: 429,
    grpcStatus: 'RESOURCE_EXHAUSTED',
    when: 'The account, or callers without valid credentials, exceeded the rate limit. Wait for the time in Retry-After or RetryInfo, and send the request again.',
  },
  overloaded: {
    title: 'The gateway is overloaded',
    httpStatus: 503,
    grpcStatus: 'UNAVAILABLE',
    when: 'The gateway is handling too many requests. Nothing was stored. Wait for the time in Retry-After or RetryInfo, and send the request again.',
  },
  unavailable: {
    title: 'Service unavailable',
    httpStatus: 503,
    grpcStatus: 'UNAVAILABLE',
    when: 'The database could not be reached, or its response was lost. Send the request again.',
    whenCreating: `The database could not be reached, or its response was lost. ${sendOrderAgain}`,
  },
  deadline_exceeded: {
    title: 'Deadline exceeded',
    httpStatus: 504,
    grpcStatus: 'DEADLINE_EXCEEDED',
    when: 'The request took too long. Send it again.',
    whenCreating: `The request took too long. ${sendOrderAgain}`,
  },
  internal: {
    title: 'Internal server error',
    httpStatus: 500,
    grpcStatus: 'INTERNAL',
    when: 'The request failed because of a bug in the gateway. The operator can find the cause in the log by the request_id.',
  },
} as const satisfies Record<FailureCode, CatalogueEntry>;

const notFoundDetails = {
  order_id: 'You have no order with this order_id.',
  service_order_id: 'You have no order with this service_order_id.',
  payment_id: 'None of your orders has an accepted or refused payment with this payment_id.',
  payment_link: 'No order has this payment link.',
  webhook_endpoint: 'You have no webhook endpoint with this id.',
  event: 'You have no event with this id from the last 30 days.',
  client_secret: 'You have no client secret with this id.',
} as const satisfies Record<NonNullable<Extract<Failure, { kind: 'not_found' }>['unknown']>, string>;

/** Returns when an error occurs and what to do about it, in general or for requests that create an order. */
export function failureAdvice(code: FailureCode, creates: boolean): string {
  const { when, whenCreating }: CatalogueEntry = errorCatalogue[code];
  return creates ? (whenCreating ?? when) : when;
}

/**
 * Returns what happened to this request, for the developer of the caller. It repeats no value of the request except the
 * canonical text and forbidden characters.
 */
export function failureDetail(failure: Failure): string {
  switch (failure.kind) {
    case 'invalid_order':
    case 'invalid_request':
      return failure.errors.map(({ field, message }) => `${field} ${message}`).join('; ');
    case 'checksum_mismatch':
      return `The gateway hashed this text with the client secret of the request: ${failure.canonicalText}`;
    case 'order_id_conflict':
      return `You already have an order with this order_id. It differs in: ${failure.fields.join(', ')}`;
    case 'malformed_request':
    case 'malformed_json':
      return failure.reason;
    case 'method_not_allowed':
      return `Allowed methods: ${failure.allow}`;
    case 'permission_denied':
    case 'webhook_url_not_allowed':
      return failure.reason ?? errorCatalogue[failure.kind].when;
    case 'not_found':
      return failure.unknown === undefined ? errorCatalogue.not_found.when : notFoundDetails[failure.unknown];
    default:
      return failureAdvice(failure.kind, 'orderMayExist' in failure);
  }
}
