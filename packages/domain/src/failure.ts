import type { FieldError } from './requests/field-rules.ts';

/** A failure that has details beyond its code. */
type DetailedFailure =
  | { readonly kind: 'invalid_order' | 'invalid_request'; readonly errors: readonly FieldError<string>[] }
  | { readonly kind: 'checksum_mismatch'; readonly canonicalText: string }
  | { readonly kind: 'order_id_conflict'; readonly fields: readonly string[] }
  | { readonly kind: 'malformed_request' | 'malformed_json'; readonly reason: string }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  /** `reason` is a sentence. If it is absent, the general description of the code applies. */
  | { readonly kind: 'permission_denied' | 'webhook_url_not_allowed'; readonly reason?: string }
  /** `unknown` says what was looked up; it is absent for an unknown path. */
  | {
      readonly kind: 'not_found';
      readonly unknown?:
        | 'order_id'
        | 'service_order_id'
        | 'payment_id'
        | 'payment_link'
        | 'webhook_endpoint'
        | 'event'
        | 'client_secret';
    }
  /** `retryAfterMs`: whole milliseconds. */
  | { readonly kind: 'rate_limited' | 'overloaded' | 'payment_in_progress'; readonly retryAfterMs: number }
  /** `orderMayExist` is set once the order has been passed to the store. */
  | { readonly kind: 'unavailable' | 'deadline_exceeded'; readonly orderMayExist?: true };

/** A failure that its code describes completely. */
interface CodeOnlyFailure {
  readonly kind:
    | 'unauthenticated'
    | 'request_timeout'
    | 'payment_id_conflict'
    | 'payment_attempt_ended'
    | 'order_already_paid'
    | 'order_cancelled'
    | 'order_expired'
    | 'payment_mismatch'
    | 'order_not_paid'
    | 'refund_exceeds_payment'
    | 'refund_id_conflict'
    | 'refunds_not_supported'
    | 'too_many_endpoints'
    | 'webhook_endpoint_disabled'
    | 'webhooks_not_configured'
    | 'too_many_client_secrets'
    | 'last_client_secret'
    | 'cursor_expired'
    | 'body_too_large'
    | 'unsupported_media_type'
    | 'headers_too_large'
    | 'internal';
}

/** Why a request failed, as a value. The contract's error catalogue has the statuses and the text for each code. */
export type Failure = DetailedFailure | CodeOnlyFailure;

/** The code of an error, the same in every API. */
export type FailureCode = Failure['kind'];
