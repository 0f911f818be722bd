import { type Failure, failures } from '@gateway/domain/failure';
import type { LinkedOrder } from '@gateway/domain/order-store';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import { negotiate } from '../pages/negotiate.ts';
import {
  hasPaymentForm,
  paymentJson,
  paymentPage,
  rejectedPage,
  troublePage,
  unknownLinkPage,
} from '../pages/payment-page.ts';
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

/**
 * Of a page with a form. Chromium applies form-action to every redirect that follows a form: to the return link, and on to
 * wherever the merchant's site redirects from there, which nobody here knows.
 */
const formSecurityPolicy = contentSecurityPolicy(paymentPageStyle, "'self' http: https:");

/** `GET /payment/{order_token}`: the page for the customer, or its facts as JSON. It changes nothing. */
export function paymentRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  app.get('/payment/*', { config: { operation: 'PaymentPage' } }, async (request, reply) => {
    const { call } = request;
    const link = await call.run(() => findPaymentLink(deps, call, wildcardOf(request)));
    if (!link.ok) return sendLinkFailure(deps, request, reply, link.failure);
    call.succeed('ok');
    return sendPayment(deps, request, reply, link.value);
  });
}

/** Sends an order as the client wants it: the page for the customer, or its facts as JSON. */
export async function sendPayment(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  link: LinkedOrder,
  notice?: 'declined',
): Promise<FastifyReply> {
  const { format, language } = negotiate(request.headers);
  reply.headers(pageHeaders);
  if (format === 'json') return reply.type('application/json').send(paymentJson(deps, link));
  if (hasPaymentForm(link)) reply.header('content-security-policy', formSecurityPolicy);
  return reply.headers(htmlHeaders(language)).send(await paymentPage(deps, link, language, notice));
}

/**
 * Sends a failure as the client wants it: a page for the customer, or a problem document. No customer sees `invalid_request`, as
 * the pages' own forms are valid.
 */
export async function sendLinkFailure(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  failure: Failure,
): Promise<FastifyReply> {
  const { format, language } = negotiate(request.headers);
  reply.headers(pageHeaders);
  if (format === 'json' || failure.kind === 'invalid_request') return sendFailure(reply, failure, deps);
  const { httpStatus } = failures[failure.kind];
  const page = httpStatus === 404 ? unknownLinkPage : httpStatus < 500 ? rejectedPage : troublePage;
  return reply
    .code(httpStatus)
    .headers({ ...headersOfFailure(failure), ...htmlHeaders(language) })
    .send(await page(language));
}

/** Sends the customer back to the merchant, after a form. */
export function sendRedirect(reply: FastifyReply, address: string): FastifyReply {
  return reply.headers(pageHeaders).redirect(address, 303);
}

function htmlHeaders(language: string): Record<string, string> {
  return { 'content-type': 'text/html; charset=utf-8', 'content-language': language };
}
