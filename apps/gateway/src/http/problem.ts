import { errorCatalogue, failureDetail } from '@order-gateway/contract/errors';
import type { Failure } from '@order-gateway/domain/failure';
import type { BaseUrl } from '@order-gateway/domain/links';

/** Builds the response to a failure as RFC 9457 defines it. `type` links to the page that explains the code. */
export function problemOf(failure: Failure, requestId: string, baseUrl: BaseUrl) {
  const { title, httpStatus } = errorCatalogue[failure.kind];
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
      'content-type': 'application/problem+json; charset=utf-8',
      'x-request-id': requestId,
    },
    body: JSON.stringify(body),
  };
}

/** Returns the additional headers of the response to a failure. */
export function headersOfFailure(failure: Failure): Record<string, string> {
  // RFC 9110, 15.5.2 requires a challenge. This scheme's name stands for x-client-id and x-client-secret.
  if (failure.kind === 'unauthenticated') return { 'www-authenticate': 'ClientSecret' };
  if ('allow' in failure) return { allow: failure.allow };
  return 'retryAfterMs' in failure ? { 'retry-after': String(Math.ceil(failure.retryAfterMs / 1_000)) } : {};
}

function membersOf(failure: Failure): Record<string, unknown> {
  if ('errors' in failure) return { errors: failure.errors };
  if ('fields' in failure) return { fields: failure.fields };
  return 'canonicalText' in failure ? { canonical_text: failure.canonicalText } : {};
}

/** The failures for Fastify's own errors (fastify.dev, "Errors"). */
const frameworkFailures: Readonly<Record<string, Failure>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { kind: 'unsupported_media_type' },
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: { kind: 'unsupported_media_type' },
  FST_ERR_BAD_URL: { kind: 'not_found' },
  FST_ERR_MAX_PARAM_LENGTH: { kind: 'not_found' },
};

/** Returns the failure for an error of Fastify; `undefined` if the error is a bug of the gateway. */
export function frameworkFailure(error: unknown): Failure | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? frameworkFailures[code] : undefined;
}
