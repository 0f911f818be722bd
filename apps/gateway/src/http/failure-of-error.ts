import type { Failure } from '@gateway/domain/failure';
import type { Log } from '../log.ts';

/** What Fastify's own refusals mean (fastify.dev, "Errors"). */
const fastifyFailures: Readonly<Record<string, Failure>> = {
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

/** A refusal of the framework, or a fault of ours, which is logged. */
export function failureOf(deps: { readonly log: Log }, error: unknown, requestId: string): Failure {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  const known = typeof code === 'string' ? fastifyFailures[code] : undefined;
  if (known !== undefined) return known;
  deps.log.fault('a request failed', error, { request_id: requestId });
  return { kind: 'internal' };
}
