import type { Failure } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limitedMerchant } from '../rate-limit.ts';
import { refusal } from './http-answer.ts';

/** Answers a request with a problem document. */
export function refuse(
  deps: { readonly baseUrl: () => BaseUrl },
  request: FastifyRequest,
  reply: FastifyReply,
  failure: Failure,
): FastifyReply {
  request.outcome = failure.kind;
  request.merchantId ??= limitedMerchant(failure);
  const { status, headers, body } = refusal(failure, request.id, deps.baseUrl());
  return reply.code(status).headers(headers).send(body);
}
