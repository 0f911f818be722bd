import type { IncomingHttpHeaders } from 'node:http';
import { failures } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';
import type { FastifyInstance } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import { returnLink } from '../orders/return-link.ts';
import { simulatePayment } from '../orders/simulate-payment.ts';
import { sendLinkFailure, sendPayment, sendRedirect } from './payments.ts';

/** `POST /payment/{order_token}/simulate`: what the buttons of a test order's page send. */
export function simulateRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  // All methods: GET would match `/payment/*` and show an unknown link. After Decline the browser's address is this path.
  app.all<{ Params: { order_token: string } }>('/payment/:order_token/simulate', {
    config: { operation: 'SimulatePayment' },
    async onRequest(request, reply) {
      const { call, headers, method } = request;
      if (method !== 'POST') {
        return sendLinkFailure(deps, request, reply, call.fail({ kind: 'method_not_allowed', allow: 'POST' }));
      }
      if (isFromAnotherSite(headers, deps.baseUrl())) {
        return sendLinkFailure(deps, request, reply, call.fail({ kind: 'permission_denied' }));
      }
    },
    async handler(request, reply) {
      const { call, params, body } = request;
      const form = new URLSearchParams(body instanceof Uint8Array ? body.toString() : '');
      const outcome = form.get('outcome');
      const simulated = await call.run(() => simulatePayment(deps, call, params.order_token, outcome));
      if (simulated.ok) {
        call.succeed('ok');
        if (outcome === 'decline') return sendPayment(deps, request, reply, simulated.value, 'declined');
        return sendRedirect(reply, returnLink(deps, simulated.value));
      }
      const { failure } = simulated;
      const isClosed = failures[failure.kind].httpStatus === 409;
      const link = isClosed ? await call.run(() => findPaymentLink(deps, call, params.order_token)) : simulated;
      if (!link.ok) return sendLinkFailure(deps, request, reply, link.failure);
      return sendPayment(deps, request, reply.code(409), link.value);
    },
  });
}

/**
 * Whether a browser sent the form from a page of another site. Sec-Fetch-Site decides; browsers omit it over http, except to
 * localhost, and then Origin does. Other clients send neither.
 */
function isFromAnotherSite(headers: IncomingHttpHeaders, baseUrl: BaseUrl): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin';
  return headers.origin !== undefined && headers.origin !== new URL(baseUrl).origin;
}
