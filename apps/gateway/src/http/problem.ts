import { type Failure, failureDetail, failures } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';

const problemMediaType = 'application/problem+json';

/** An error response as it goes out: RFC 9457. Header names are in lower case. */
export interface ProblemResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The response to a failure. `type` leads to the page that explains the code. */
export function problemOf(failure: Failure, requestId: string, baseUrl: BaseUrl): ProblemResponse {
  const { title, httpStatus } = failures[failure.kind];
  const body = {
    type: `${baseUrl}/docs/errors#${failure.kind}`,
    title,
    status: httpStatus,
    detail: failureDetail(failure),
    code: failure.kind,
    request_id: requestId,
    ...membersOf(failure),
  };
  return {
    status: httpStatus,
    headers: {
      ...headersOfFailure(failure),
      'content-type': `${problemMediaType}; charset=utf-8`,
      'x-request-id': requestId,
    },
    body: JSON.stringify(body),
  };
}

/** The headers that a failure has beside its body. */
export function headersOfFailure(failure: Failure): Record<string, string> {
  switch (failure.kind) {
    case 'method_not_allowed':
      return { allow: failure.allow };
    case 'rate_limited':
    case 'overloaded':
      return { 'retry-after': String(Math.ceil(failure.retryAfterMs / 1_000)) };
    default:
      return {};
  }
}

function membersOf(failure: Failure): Record<string, unknown> {
  switch (failure.kind) {
    case 'invalid_order':
    case 'invalid_request':
      return { errors: failure.errors };
    case 'order_id_conflict':
      return { fields: failure.fields };
    case 'checksum_mismatch':
      return { canonical_text: failure.canonicalText };
    default:
      return {};
  }
}

/** The failures that Fastify's own errors stand for (fastify.dev, "Errors"). */
const frameworkFailures: Readonly<Record<string, Failure>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: { kind: 'body_too_large' },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { kind: 'unsupported_media_type' },
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: { kind: 'unsupported_media_type' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    kind: 'malformed_json',
    reason: 'The body is not as long as Content-Length says.',
  },
  FST_ERR_BAD_URL: { kind: 'not_found' },
  ECONNRESET: { kind: 'malformed_json', reason: 'The body ended early.' },
};

/** The failure that an error of Fastify or Node.js stands for; `undefined` for a bug of ours. */
export function frameworkFailure(error: unknown): Failure | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? frameworkFailures[code] : undefined;
}
