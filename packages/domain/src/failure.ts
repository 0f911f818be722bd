import type { FieldError } from './field-rules.ts';
import type { OrderFieldName } from './order-fields.ts';

interface FailureFacts {
  /** A short summary that stays the same from one occurrence to the next (RFC 9457 `title`). */
  readonly title: string;
  readonly httpStatus: number;
  /** The canonical gRPC status code's name, or `null` where the failure cannot happen at that door. */
  readonly grpcStatus: string | null;
  /** When it is answered, and what the caller does about it. */
  readonly when: string;
}

/** Every way in which the gateway refuses: the one list from which each door's answers and the documentation are made. */
export const failures = {
  malformed_json: {
    title: 'The body is not a JSON object',
    httpStatus: 400,
    grpcStatus: null,
    when: 'The body is not JSON, not UTF-8, has a duplicate key, or is not one object. Correct the body.',
  },
  invalid_order: {
    title: 'The order has invalid fields',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: 'One or more fields are missing or break their rule; all of them are listed. Correct them and send the order again.',
  },
  unauthenticated: {
    title: 'The credentials are missing or wrong',
    httpStatus: 401,
    grpcStatus: 'UNAUTHENTICATED',
    when: 'x-client-id or x-client-secret is missing, unknown or wrong: one answer for all three. Correct the credentials.',
  },
  checksum_mismatch: {
    title: 'The order checksum does not verify',
    httpStatus: 400,
    grpcStatus: 'INVALID_ARGUMENT',
    when: 'A checksum that begins with v1= is not the one of the canonical text, which the answer holds. Compare it with yours.',
  },
  not_found: {
    title: 'There is nothing here',
    httpStatus: 404,
    grpcStatus: 'NOT_FOUND',
    when: 'The path, the order or the payment link is not known.',
  },
  method_not_allowed: {
    title: 'The path does not take this method',
    httpStatus: 405,
    grpcStatus: null,
    when: 'The path exists and takes the methods that the Allow header names.',
  },
  request_timeout: {
    title: 'Request timeout',
    httpStatus: 408,
    grpcStatus: null,
    when: 'The headers or the body came too slowly. Send the request again on a new connection.',
  },
  order_id_conflict: {
    title: 'The order_id belongs to another order',
    httpStatus: 409,
    grpcStatus: 'ALREADY_EXISTS',
    when: 'An order with this order_id exists and differs in the listed fields. Nothing was written. Use a new order_id.',
  },
  body_too_large: {
    title: 'The body is too large',
    httpStatus: 413,
    grpcStatus: 'RESOURCE_EXHAUSTED',
    when: 'The body or message is larger than 64 KiB, or the headers are larger than 16 KiB.',
  },
  unsupported_media_type: {
    title: 'The body must be application/json',
    httpStatus: 415,
    grpcStatus: null,
    when: 'The Content-Type is not application/json in UTF-8, or the body is compressed.',
  },
  rate_limited: {
    title: 'Too many requests',
    httpStatus: 429,
    grpcStatus: 'RESOURCE_EXHAUSTED',
    when: 'The merchant sends more than its share. Send again after the time that Retry-After or RetryInfo gives.',
  },
  overloaded: {
    title: 'The gateway is at its limit',
    httpStatus: 503,
    grpcStatus: 'UNAVAILABLE',
    when: 'Refused before any work was done. Send again after the time that Retry-After or RetryInfo gives.',
  },
  unavailable: {
    title: 'The outcome is not known',
    httpStatus: 503,
    grpcStatus: 'UNAVAILABLE',
    when: 'The database could not be reached, or its answer was lost. Send the same order_id again: it never makes a second order.',
  },
  deadline_exceeded: {
    title: 'The deadline passed',
    httpStatus: 504,
    grpcStatus: 'DEADLINE_EXCEEDED',
    when: 'There was no answer in time; the order may have been created. Send the same order_id again.',
  },
  internal: {
    title: 'The gateway failed',
    httpStatus: 500,
    grpcStatus: 'INTERNAL',
    when: 'A fault of the gateway. Its operators find the cause under the request_id.',
  },
} as const satisfies Record<string, FailureFacts>;

/** The machine code of a refusal: the same at every door. */
export type FailureCode = keyof typeof failures;

/** A refusal that tells more than its code. */
type TellingFailure =
  | { readonly kind: 'invalid_order'; readonly errors: readonly FieldError[] }
  | { readonly kind: 'checksum_mismatch'; readonly canonicalText: string }
  | { readonly kind: 'order_id_conflict'; readonly fields: readonly OrderFieldName[] }
  | { readonly kind: 'malformed_json'; readonly reason: string }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'rate_limited'; readonly retryAfterSeconds: number }
  | { readonly kind: 'overloaded'; readonly retryAfterSeconds: number };

/** A refusal as a value. */
export type Failure = TellingFailure | { readonly kind: Exclude<FailureCode, TellingFailure['kind']> };

/** What happened this time, in a sentence for the caller's developer. Holds nothing of the request but the canonical text. */
export function failureDetail(failure: Failure): string {
  switch (failure.kind) {
    case 'invalid_order':
      return failure.errors.map(({ field, message }) => `${field} ${message}`).join('; ');
    case 'checksum_mismatch':
      return `The gateway hashed this text with the secret of the request: ${failure.canonicalText}`;
    case 'order_id_conflict':
      return `An order with this order_id exists and differs in: ${failure.fields.join(', ')}`;
    case 'malformed_json':
      return failure.reason;
    case 'method_not_allowed':
      return `Allowed here: ${failure.allow}`;
    default:
      return failures[failure.kind].when;
  }
}
