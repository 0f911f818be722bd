import { type Failure, failures } from '@gateway/domain/failure';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import { negotiate } from '../pages/negotiate.ts';
import { paymentJson, paymentPage, troublePage, unknownLinkPage } from '../pages/payment-page.ts';
import { paymentPageStyle } from '../pages/styles.ts';
import { contentSecurityPolicy } from './content-security-policy.ts';
import { headersOfFailure } from './problem.ts';
import { sendFailure, wildcardOf } from './requests.ts';

/**
 * The headers of every response. The address is the key to the page: it goes to no other site (Referrer-Policy), into no cache
 * and no search engine, and no other site can frame the page. Nothing but the page's own style sheet is loaded or run.
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
export function paymentRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  app.get('/payment/*', async (request, reply) => {
    const { call } = request;
    const link = await call.run(() => findPaymentLink(deps, call, wildcardOf(request)));
    if (!link.ok) return sendLinkFailure(deps, request, reply, link.failure);
    call.succeed('ok');
    const { format, language } = negotiate(request.headers);
    reply.headers(pageHeaders);
    if (format === 'json') return reply.type('application/json').send(paymentJson(link.value, deps.checkoutTemplate));
    const page = await paymentPage(link.value, deps.checkoutTemplate, language);
    return reply.headers(htmlHeaders(language)).send(page);
  });
}

/** Sends a failure as the client wants it: a page for the customer, or a problem document. */
export async function sendLinkFailure(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  failure: Failure,
): Promise<FastifyReply> {
  const { format, language } = negotiate(request.headers);
  reply.headers(pageHeaders);
  if (format === 'json') return sendFailure(reply, failure, deps);
  const page = await (failure.kind === 'not_found' ? unknownLinkPage(language) : troublePage(language));
  return reply
    .code(failures[failure.kind].httpStatus)
    .headers({ ...headersOfFailure(failure), ...htmlHeaders(language) })
    .send(page);
}

function htmlHeaders(language: string): Record<string, string> {
  return { 'content-type': 'text/html; charset=utf-8', 'content-language': language };
}
