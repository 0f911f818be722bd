import type { Failure } from '@gateway/domain/failure';
import type { MerchantId } from '@gateway/domain/merchant';
import type { Result } from '@gateway/domain/result';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, KeptOrder } from '../create-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs } from '../limits.ts';
import type { CallRecord } from '../log.ts';
import { limitedMerchant } from '../rate-limit.ts';
import { requestIdOf } from '../request-id.ts';
import { failureOf } from './failure-of-error.ts';
import { type HttpAnswer, keptAnswer, refusal } from './http-answer.ts';
import { admitOrder, keepOrder } from './order-call.ts';
import type { PlainRequest } from './plain-request.ts';
import { refuse } from './refuse.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who called, once the credentials were checked. */
    caller: Caller | undefined;
  }
}

/** `POST /order` in every form. */
export function orderRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  app.decorateRequest('caller', undefined);
  // The body is taken as bytes, whatever the media type says: which types are allowed is decided before it is read.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.route({
    method: 'POST',
    url: '/order',
    onRequest: (request, reply) => admit(deps, request, reply),
    handler: (request, reply) => answer(deps, request, reply),
  });
}

async function admit(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const caller = await admitOrder(deps, request.headers);
  if (!caller.ok) return refuse(deps, request, reply, caller.failure);
  request.merchantId = caller.value.merchant.id;
  request.caller = caller.value;
  return undefined;
}

async function answer(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { caller, body } = request;
  if (caller === undefined) throw new Error('a request came past its admission');
  const bytes = body instanceof Uint8Array ? body : new Uint8Array();
  const kept = await keepOrder(deps, caller, bytes, callTimeoutMs - reply.elapsedTime);
  if (!kept.ok) return refuse(deps, request, reply, kept.failure);
  request.outcome = codeOf(kept);
  const { status, headers, body: text } = keptAnswer(kept.value, request.id, deps.baseUrl());
  return reply.code(status).headers(headers).send(text);
}

/** `POST /order` in the form that nearly all have: the same, without the framework. */
export async function answerPlainOrder(deps: GatewayDeps, { headers, body }: PlainRequest): Promise<HttpAnswer> {
  const startedAt = performance.now();
  const requestId = requestIdOf(headers['x-request-id']?.toString(), deps.randomBytes);
  const refused = (failure: Failure) => refusal(failure, requestId, deps.baseUrl());
  let merchantId: MerchantId | undefined;
  let code: CallRecord['code'];
  let answer: HttpAnswer;
  try {
    const caller = await admitOrder(deps, headers);
    merchantId = caller.ok ? caller.value.merchant.id : limitedMerchant(caller.failure);
    const timeLeftMs = callTimeoutMs - (performance.now() - startedAt);
    const kept = caller.ok ? await keepOrder(deps, caller.value, body, timeLeftMs) : caller;
    code = codeOf(kept);
    answer = kept.ok ? keptAnswer(kept.value, requestId, deps.baseUrl()) : refused(kept.failure);
  } catch (error) {
    const failure = failureOf(deps, error, requestId);
    code = failure.kind;
    answer = refused(failure);
  }
  const duration = performance.now() - startedAt;
  deps.log.call({ request_id: requestId, door: 'json', merchant_id: merchantId, code, duration_ms: duration });
  return answer;
}

function codeOf(kept: Result<KeptOrder, Failure>): CallRecord['code'] {
  if (!kept.ok) return kept.failure.kind;
  return kept.value.replayed ? 'replayed' : 'created';
}
