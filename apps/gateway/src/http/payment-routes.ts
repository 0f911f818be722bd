import type { CheckoutTemplate } from '@gateway/domain/checkout-link';
import { type Failure, failures } from '@gateway/domain/failure';
import type { Result } from '@gateway/domain/result';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { findPaymentLink, type PaymentLinkFacts } from '../find-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs } from '../limits.ts';
import { negotiate, type Wanted } from '../pages/negotiate.ts';
import { paymentJson, paymentPage, troublePage, unknownLinkPage } from '../pages/payment-page.ts';
import { paymentPageStyle } from '../pages/styles.ts';
import { contentSecurityPolicy } from './content-security-policy.ts';
import { headersOfFailure } from './problem.ts';
import { refuse } from './refuse.ts';
import { wildcardOf } from './wildcard.ts';

export interface PaymentDeps extends GatewayDeps {
  readonly checkoutTemplate: CheckoutTemplate | undefined;
}

/**
 * What every answer carries. The address is the key to the page: it goes to no other site (Referrer-Policy), into no cache and
 * no search engine, and no other site can frame the page. Nothing but the page's own style sheet is loaded or run.
 */
const pageHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': contentSecurityPolicy(paymentPageStyle),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  vary: 'Accept, Accept-Language',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex, nofollow',
};

/** `GET /payment/{order_token}`: the page for the customer, or its facts as JSON. It changes nothing. */
export function paymentRoutes(app: FastifyInstance, deps: PaymentDeps): void {
  app.get('/payment/*', async (request, reply) => {
    reply.headers(pageHeaders);
    const wanted = negotiate(request.headers);
    const found = await find(deps, request, reply);
    return found.ok
      ? tell(deps, request, reply, wanted, found.value)
      : tellFailure(deps, request, reply, wanted, found.failure);
  });
}

/** A link that can't be decoded reaches no route, and is answered as any other unknown one. */
export function refuseUndecodableLink(
  deps: PaymentDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return tellFailure(deps, request, reply.headers(pageHeaders), negotiate(request.headers), { kind: 'not_found' });
}

/** A fault of ours gets a page too. */
async function find(
  deps: PaymentDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Result<PaymentLinkFacts, Failure>> {
  try {
    return await findPaymentLink(deps, wildcardOf(request), callTimeoutMs - reply.elapsedTime);
  } catch (error) {
    deps.log.fault('a payment page failed', error, { request_id: request.id });
    return { ok: false, failure: { kind: 'internal' } };
  }
}

async function tell(
  { checkoutTemplate }: PaymentDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { format, language }: Wanted,
  facts: PaymentLinkFacts,
): Promise<FastifyReply> {
  request.outcome = 'ok';
  reply.header('x-request-id', request.id);
  if (format === 'json') return reply.type('application/json').send(paymentJson(facts, checkoutTemplate));
  const page = await paymentPage(facts, checkoutTemplate, language);
  return reply.headers(htmlHeaders(language)).send(page);
}

async function tellFailure(
  deps: PaymentDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { format, language }: Wanted,
  failure: Failure,
): Promise<FastifyReply> {
  if (format === 'json') return refuse(deps, request, reply, failure);
  request.outcome = failure.kind;
  const page = await (failure.kind === 'not_found' ? unknownLinkPage(language) : troublePage(language));
  return reply
    .code(failures[failure.kind].httpStatus)
    .headers({ ...headersOfFailure(failure), ...htmlHeaders(language), 'x-request-id': request.id })
    .send(page);
}

function htmlHeaders(language: string): Record<string, string> {
  return { 'content-type': 'text/html; charset=utf-8', 'content-language': language };
}
