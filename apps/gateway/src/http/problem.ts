import { type Failure, failureDetail, failures } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';

/** A refusal in the words of HTTP: RFC 9457. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export const problemMediaType = 'application/problem+json';

/** What a failure answers over HTTP. `type` leads to the page that explains the code. */
export function problemOf(failure: Failure, requestId: string, baseUrl: BaseUrl): Problem {
  const { title, httpStatus } = failures[failure.kind];
  return {
    status: httpStatus,
    headers: headersOfFailure(failure),
    body: {
      type: `${baseUrl}/docs/errors#${failure.kind}`,
      title,
      status: httpStatus,
      detail: failureDetail(failure),
      code: failure.kind,
      request_id: requestId,
      ...membersOf(failure),
    },
  };
}

/** The headers that a failure has beside its body. */
export function headersOfFailure(failure: Failure): Record<string, string> {
  switch (failure.kind) {
    case 'method_not_allowed':
      return { allow: failure.allow };
    case 'rate_limited':
    case 'overloaded':
      return { 'retry-after': String(failure.retryAfterSeconds) };
    default:
      return {};
  }
}

function membersOf(failure: Failure): Record<string, unknown> {
  switch (failure.kind) {
    case 'invalid_order':
      return { errors: failure.errors };
    case 'order_id_conflict':
      return { fields: failure.fields };
    case 'checksum_mismatch':
      return { canonical_text: failure.canonicalText };
    default:
      return {};
  }
}
