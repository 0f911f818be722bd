import type { ErrorCode, FieldError } from './types.ts';

/** The gateway, or a proxy in front of it, returned an error. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  /** The error code to branch on. `unknown` if the response is not from the gateway, such as a proxy's error page. */
  readonly code: ErrorCode | 'unknown';
  /** The HTTP status. */
  readonly status: number;
  /** The id of the request. Include it when you ask for support. */
  readonly requestId: string | undefined;
  /** All invalid fields of `invalid_order` and all invalid parameters of `invalid_request`; otherwise empty. */
  readonly errors: readonly FieldError[];
  /** The fields in which the orders of an `order_id_conflict` differ; otherwise empty. */
  readonly fields: readonly string[];
  /** How long the gateway asks you to wait before you retry, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  /**
   * Whether a failed call may have taken effect: the order may exist although `createOrder` failed, or may be cancelled
   * although `cancelOrder` failed. If so, repeat the call with the same order. Always false for lookups and lists.
   */
  readonly outcomeUnknown: boolean;

  /** Constructed by this package only. */
  constructor(message: string, details: Omit<GatewayError, keyof Error>) {
    super(message);
    this.code = details.code;
    this.status = details.status;
    this.requestId = details.requestId;
    this.errors = details.errors;
    this.fields = details.fields;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.outcomeUnknown = details.outcomeUnknown;
  }
}

/** No complete response arrived: the connection failed, or `timeoutMs` elapsed. `cause` is the error of `fetch`. */
export class GatewayNetworkError extends Error {
  override readonly name = 'GatewayNetworkError';
  /** Whether the call may have taken effect, as in {@link GatewayError}. */
  readonly outcomeUnknown: boolean;

  /** Constructed by this package only. */
  constructor(cause: unknown, outcomeUnknown: boolean) {
    // The error "fetch failed" contains the reason, such as ECONNREFUSED, in its `cause`.
    const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    super(`No response from the gateway: ${reason instanceof Error ? reason.message : reason}`, { cause });
    this.outcomeUnknown = outcomeUnknown;
  }
}

/**
 * The gateway did not sign the webhook or return link with this secret, or the signature is too old. Do not trust the
 * content.
 */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
}
