import type { Failure } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { problemMediaType, problemOf } from './problem.ts';

/** Answers a request with a problem document. */
export function refuse(
  deps: { readonly baseUrl: () => BaseUrl },
  request: FastifyRequest,
  reply: FastifyReply,
  failure: Failure,
): FastifyReply {
  request.outcome = failure.kind;
  if (failure.kind === 'rate_limited') request.merchantId = failure.merchantId;
  const { status, headers, body } = problemOf(failure, request.id, deps.baseUrl());
  return reply
    .code(status)
    .headers({ ...headers, 'content-type': problemMediaType, 'x-request-id': request.id })
    .send(JSON.stringify(body));
}
