import { errorCatalogue } from '@order-gateway/contract/errors';
import type { Failure } from '@order-gateway/domain/failure';
import { paymentLink } from '@order-gateway/domain/links';
import { type LinkedOrder, mayChange } from '@order-gateway/domain/orders';
import { languageOf, type PageLocale } from '@order-gateway/pages/localization';
import { negotiate } from '@order-gateway/pages/negotiate';
import { qrCodeSvg } from '@order-gateway/pages/qr-code';
import { contentSecurityPolicy, hashSource, paymentPageStyle, privatePageHeaders } from '@order-gateway/pages/styles';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { takeBody } from '../../calls/receive.ts';
import { admitUnauthenticated } from '../../http/admit-unauthenticated.ts';
import { headersOfFailure } from '../../http/problem.ts';
import { type HttpDeps, isForm, isFromAnotherSite, sendFailure, startReading } from '../../http/requests.ts';
import { returnLink } from '../../operations/payments.ts';
import type { OperationDeps } from '../../operations/service.ts';
import { findPaymentLink, linkNotFound } from '../../operations/stored-orders.ts';
import { type PageWatch, pageVersion } from '../../watches/page-watch.ts';
import {
  failurePage,
  formTargets,
  type PaymentPageDeps,
  pagePath,
  pageScript,
  paymentJson,
  paymentPage,
  stylesOf,
} from './payment-page.ts';
import { simulatePayment } from './simulate-payment.ts';

const styleSource = hashSource(paymentPageStyle);
const scriptSource = hashSource(pageScript);

/**
 * The default headers of responses. The address gives access to the page. Only the gateway's own style sheet is
 * applied, except on an order's page, which has its own policy ({@link pagePolicy}).
 */
export const pageHeaders = {
  ...privatePageHeaders,
  'content-security-policy': contentSecurityPolicy({ styles: [styleSource] }),
  vary: 'Accept, Accept-Language',
};

export interface PaymentRoutesDeps extends HttpDeps, PaymentPageDeps, Pick<OperationDeps, 'store' | 'randomBytes'> {
  readonly pageWatch: PageWatch;
}

/** Returns the Content-Security-Policy of an order's page. */
function pagePolicy(deps: PaymentPageDeps, link: LinkedOrder): string {
  const [, ...brandStyles] = stylesOf(link);
  return contentSecurityPolicy({
    styles: [styleSource, ...brandStyles.map(hashSource)],
    script: scriptSource,
    formAction: formTargets(deps, link),
  });
}

/**
 * Adds three routes. `GET /payment/{order_token}` returns the page for the customer, or its content as JSON, and
 * changes nothing. A link that was pasted with the punctuation that followed it redirects to the page.
 * `GET /payment/{order_token}/qr.svg` returns its link as a QR code. `POST /payment/{order_token}/simulate` receives
 * the form of the buttons on a test order's page.
 */
export function paymentRoutes(app: FastifyInstance, deps: PaymentRoutesDeps): void {
  admitUnauthenticated(app, deps, sendLinkFailure);
  app.get<{ Params: { '*': string } }>('/payment/*', {
    config: { operation: 'PaymentPage' },
    async handler(request, reply) {
      const { call, params, url } = request;
      const token = params['*'];
      const pastedToken = token.replace(/[\p{P}\p{S}\s]+$/u, '');
      const link = await call.run(() => findPaymentLink(deps.store.findForPage, call, pastedToken));
      if (!link.ok) return sendLinkFailure(reply, link.failure, deps);
      call.succeed('ok');
      if (pastedToken !== token) {
        const [query = ''] = /\?.*/s.exec(url) ?? [];
        return reply.headers(pageHeaders).redirect(`${pagePath(deps, link.value)}${query}`, 303);
      }
      const shown = await linkUnlessCurrent(request, link.value, deps);
      return shown === undefined ? reply.code(304).headers(pageHeaders).send() : sendPayment(reply, shown, deps);
    },
  });
  app.get<{ Params: { order_token: string } }>('/payment/:order_token/qr.svg', {
    config: { operation: 'PaymentQrCode' },
    async handler({ call, params }, reply) {
      const link = await call.run(() => findPaymentLink(deps.store.findForPage, call, params.order_token));
      if (!link.ok) return sendLinkFailure(reply, link.failure, deps);
      call.succeed('ok');
      const svg = qrCodeSvg(paymentLink(deps.baseUrl(), link.value.order.orderToken));
      // Merchants show the QR code on their own pages.
      reply.headers({ ...pageHeaders, 'cross-origin-resource-policy': 'cross-origin' });
      return reply.type('image/svg+xml').send(svg);
    },
  });
  // Handles all methods, because GET would otherwise match `/payment/*` and show an unknown link. After Decline, the
  // browser's address is this path, so it may be loaded again.
  app.all<{ Params: { order_token: string } }>('/payment/:order_token/simulate', {
    config: { operation: 'SimulatePayment' },
    async onRequest({ method, headers }, reply) {
      if (method !== 'POST') return sendLinkFailure(reply, { kind: 'method_not_allowed', allow: 'POST' }, deps);
      if (!isForm(headers)) {
        return sendFailure(reply.headers(pageHeaders), { kind: 'unsupported_media_type' }, deps);
      }
    },
    // Reads the form before the call is admitted, because the client may send it slowly.
    async preValidation(request, reply) {
      const body = await takeBody(request.call, startReading(deps, request, reply, { hasEnvelope: false }));
      if (!body.ok) return sendFailure(reply, body.failure, deps);
      request.body = body.value;
    },
    async preHandler({ headers }, reply) {
      if (isFromAnotherSite(headers, deps.baseUrl())) {
        return sendLinkFailure(reply, { kind: 'permission_denied' }, deps);
      }
    },
    async handler({ call, params, body }, reply) {
      const form = new URLSearchParams(body instanceof Uint8Array ? body.toString() : '');
      const [outcome = null, ...furtherOutcomes] = form.getAll('outcome');
      const simulated = await call.run(() =>
        simulatePayment(deps, call, params.order_token, furtherOutcomes.length === 0 ? outcome : null),
      );
      if (simulated.ok) {
        call.succeed('ok');
        if (outcome === 'decline') return sendPayment(reply, simulated.value, deps, 'declined');
        if (outcome === 'expire') return sendPayment(reply, simulated.value, deps);
        return reply.headers(pageHeaders).redirect(returnLink(deps, simulated.value), 303);
      }
      call.fail(simulated.failure);
      const isClosed = errorCatalogue[simulated.failure.kind].httpStatus === 409;
      const link = isClosed
        ? await call.run(() => findPaymentLink(deps.store.findForPage, call, params.order_token))
        : simulated;
      if (!link.ok) return sendLinkFailure(reply, link.failure, deps);
      return sendPayment(reply.code(409), link.value, deps);
    },
  });
}

/** Sends the page of an unknown link for an address that reaches none of these routes. */
export function unroutablePaymentPage(deps: HttpDeps) {
  return { pathStart: '/payment/', send: (reply: FastifyReply) => sendLinkFailure(reply, linkNotFound, deps) };
}

/**
 * Returns the order to show. If the client already shows its current page (`If-None-Match`), waits for a change for as
 * long as the client prefers, and returns `undefined` if there is none.
 */
async function linkUnlessCurrent(
  request: FastifyRequest,
  link: LinkedOrder,
  { pageWatch, now, responseTakenTimeoutMs }: PaymentRoutesDeps,
): Promise<LinkedOrder | undefined> {
  const { call, headers, raw, releaseSlot } = request;
  if (headers['if-none-match'] !== pageVersion(link)) return link;
  const timeoutMs = call.waitMs();
  if (timeoutMs === 0 || !mayChange(link.order, now())) return undefined;
  // A waiting call needs only its connection, which may be closed in favour of another client.
  releaseSlot?.();
  call.peer.markIdle();
  raw.socket.setTimeout(timeoutMs + responseTakenTimeoutMs);
  return call.pause((signal) => pageWatch.changed(link, { timeoutMs, signal }));
}

/** Sends an order in the form that the client prefers: the page for the customer, or its data as JSON. */
async function sendPayment(
  reply: FastifyReply,
  link: LinkedOrder,
  deps: PaymentPageDeps,
  notice?: 'declined',
): Promise<FastifyReply> {
  const { format, locale, chosen } = negotiate(reply.request.headers, {
    query: reply.request.query,
    customerLocale: link.order.fields.customer_locale,
  });
  reply.headers({ ...pageHeaders, etag: pageVersion(link) });
  if (format === 'json') return reply.type('application/json').send(paymentJson(deps, link));
  reply.header('content-security-policy', pagePolicy(deps, link));
  // The page's links to itself are relative. After the customer has sent a form, the browser's address is that of the
  // form, so the links need the path.
  const path = reply.request.method === 'POST' ? pagePath(deps, link) : '';
  return reply.headers(htmlHeaders(locale)).send(await paymentPage(deps, link, locale, notice, { path, chosen }));
}

/**
 * Records a failure of the call, and sends it in the form that the client prefers: a page for the customer, or a
 * problem document. No customer sees `invalid_request`, because the pages' own forms are valid.
 */
export async function sendLinkFailure(
  reply: FastifyReply,
  failure: Failure,
  deps: Pick<HttpDeps, 'baseUrl'>,
): Promise<FastifyReply> {
  const { format, locale } = negotiate(reply.request.headers, reply.request);
  reply.headers(pageHeaders);
  if (format === 'json' || failure.kind === 'invalid_request') return sendFailure(reply, failure, deps);
  reply.request.call.fail(failure);
  const { httpStatus } = errorCatalogue[failure.kind];
  return reply
    .code(httpStatus)
    .headers({ ...headersOfFailure(failure), ...htmlHeaders(locale) })
    .send(await failurePage(httpStatus, locale));
}

function htmlHeaders(locale: PageLocale): Record<string, string> {
  return { 'content-type': 'text/html; charset=utf-8', 'content-language': languageOf(locale) };
}
