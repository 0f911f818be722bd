import type { Failure } from '@order-gateway/domain/failure';
import { type LinkedOrder, serviceOrderIdMax } from '@order-gateway/domain/orders';
import { failed, type Result } from '@order-gateway/domain/result';
import { checkReturn, type SignatureCheck } from '@order-gateway/domain/signing';
import type { FastifyInstance } from 'fastify';
import type { Call } from '../../calls/call.ts';
import { admitUnauthenticated } from '../../http/admit-unauthenticated.ts';
import type { HttpDeps } from '../../http/requests.ts';
import { returnSigning } from '../../operations/payments.ts';
import type { OperationDeps } from '../../operations/service.ts';
import { resultOf } from '../../operations/stored-orders.ts';
import { pageHeaders, sendLinkFailure } from '../payment-page/payment-routes.ts';
import type { Demo } from './demo-merchant.ts';
import { demoReturnPage, demoReturnPath } from './demo-return-page.ts';

export interface DemoRoutesDeps extends HttpDeps, Pick<OperationDeps, 'store' | 'signingSecrets' | 'now'> {
  /** Absent: the gateway has no demo, because its database is not the embedded one. */
  readonly demo: Demo | undefined;
}

/**
 * Adds `GET /demo/return` to a gateway with a demo merchant. The customers of its orders return to this page, which
 * stands in for a shop's page. It shows what a shop receives, and whether the shop can trust it.
 */
export function demoRoutes(app: FastifyInstance, deps: DemoRoutesDeps): void {
  const { demo } = deps;
  if (demo === undefined) return;
  admitUnauthenticated(app, deps, sendLinkFailure);
  app.get(demoReturnPath, { config: { operation: 'DemoReturn' } }, async ({ call, url }, reply) => {
    const query = new URLSearchParams(/\?.*/s.exec(url)?.[0]);
    const found = await call.run(() => findReturned(deps, demo, call, query));
    if (!found.ok && found.failure.kind !== 'not_found') return sendLinkFailure(reply, found.failure, deps);
    call.succeed('ok');
    const check = found.ok ? checkSignature(deps, found.value, query) : 'wrong';
    reply.headers(pageHeaders).type('text/html; charset=utf-8');
    return reply.send(await demoReturnPage(deps.baseUrl(), query, check));
  });
}

/** Finds the order of a return, together with its merchant, whose signing secret verifies the return. */
async function findReturned(
  { store }: DemoRoutesDeps,
  { accountId }: Demo,
  call: Call,
  query: URLSearchParams,
): Promise<Result<LinkedOrder, Failure>> {
  const notFound: Failure = { kind: 'not_found', unknown: 'service_order_id' };
  const id = Number(query.get('service_order_id'));
  if (!Number.isInteger(id) || id < 1 || id > serviceOrderIdMax) return failed(notFound);
  const order = resultOf(call, await store.findByServiceOrderId(accountId, id, call.timeLeftMs()), notFound);
  if (!order.ok) return order;
  return resultOf(call, await store.findForPage(order.value.order.orderToken, call.timeLeftMs()), notFound);
}

function checkSignature(deps: DemoRoutesDeps, link: LinkedOrder, query: URLSearchParams): SignatureCheck {
  const signing = returnSigning(deps, link);
  return signing === undefined ? 'missing' : checkReturn(query, signing);
}
