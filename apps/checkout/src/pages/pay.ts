import { setTimeout as sleep } from 'node:timers/promises';
import { type Html, withValue } from '@order-gateway/pages/html-page';
import { localTime, type PageLocale } from '@order-gateway/pages/localization';
import { backLink, languageField, payTitle } from '@order-gateway/pages/merchant-page';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { html } from 'hono/html';
import type { Advance, AdvanceDeps } from '../attempts/advance.ts';
import { recordAgain } from '../attempts/sweep.ts';
import { amountOf, type CheckoutOrder, OrderStatus } from '../gateway/gateway.ts';
import { isFormOf } from '../html/form-origin.ts';
import { inLanguage, languageFor, orderBody, sendMessage, sendPage, textsOf } from '../html/layout.ts';
import { type Offer, offerId, offersFor } from '../providers/offers.ts';
import { creditorReferenceOf } from '../providers/transfer/creditor-reference.ts';
import { transfer } from '../providers/transfer/transfer.ts';
import { openTransfers } from '../providers/transfer/transfers.ts';
import type { Attempt } from '../store/store.ts';

/** The dependencies of the pages for customers. */
export interface PageDeps extends AdvanceDeps {
  readonly advance: Advance;
  /** The public address of the gateway. */
  readonly gatewayUrl: string;
}

/** How long a returning customer waits for the provider before a page is shown. */
const backWaitMs = 10_000;
const backPollMs = 500;

/** How often the waiting page reloads, and how many times before the customer returns to the merchant. */
const refreshSeconds = 5;
const refreshesMax = 12;

/** Polls until the response redirects to another page, because a page that reloads interrupts screen readers. */
const waitScript = `const query = new URLSearchParams(location.search);
for (let n = 1; ; n += 1) {
  await new Promise((resolve) => setTimeout(resolve, ${refreshSeconds * 1_000}));
  query.set('n', n);
  const { type } = await fetch('?' + query, { redirect: 'manual' }).catch(() => ({}));
  if (type !== 'opaqueredirect') continue;
  location.replace('?' + query);
  break;
}`;

/** A session whose end the checkout can choose ends after this. Stripe requires at least 30 minutes. */
const sessionMs = 35 * 60_000;

/** Adds the pages on which customers choose a method, and to which they return. */
export function payRoutes(app: FastifyInstance, deps: PageDeps): void {
  const { store, gateway, advance, gatewayUrl } = deps;

  app.get<{ Params: { orderToken: string } }>('/pay/:orderToken', async (request, reply) => {
    const order = await gateway.resolve(request.params.orderToken);
    if (order === undefined) return sendMessage(reply, 'unknown');
    if (order.orderStatus !== OrderStatus.UN_PAID) return reply.redirect(order.returnUrl, 303);
    const unfinished = await store.unfinished(request.params.orderToken);
    if (unfinished === undefined || !isBeingPaid(unfinished)) return sendChoice(deps, reply, order);
    return reply.redirect(inLanguage(`/back/${unfinished.attemptId}`, languageFor(request).chosen), 303);
  });

  app.post<{ Params: { orderToken: string }; Body: URLSearchParams | undefined }>(
    '/pay/:orderToken',
    async (request, reply) => {
      const { orderToken } = request.params;
      // The page with the buttons changes nothing, so a form of another site is redirected to it.
      if (!isFormOf([deps.baseUrl(), gatewayUrl], request.headers)) return reply.redirect(`/pay/${orderToken}`, 303);
      const order = await gateway.resolve(orderToken);
      if (order === undefined) return sendMessage(reply, 'unknown');
      const { locale, chosen: language } = languageFor(request, order.customerLocale);
      if (order.orderStatus !== OrderStatus.UN_PAID) return reply.redirect(order.returnUrl, 303);
      const show = (page: 'pay' | 'transfer') => reply.redirect(inLanguage(`/${page}/${orderToken}`, language), 303);
      const recorded = await store.recorded(orderToken);
      const isPaid = recorded !== undefined && (await recordAgain(deps, recorded))?.state === 'RECORDED';
      const unfinished = await store.unfinished(orderToken);
      if (isPaid || (unfinished && isBeingPaid(unfinished))) return show('pay');
      const offers = await offersFor(deps, orderToken, order);
      const chosen = request.body?.get('method');
      const offer = chosen ? offers.find(({ id }) => id === chosen) : offers.length === 1 ? offers[0] : undefined;
      // An open session can be paid after its account was disconnected, which ends the offer.
      if (
        offer === undefined &&
        unfinished?.state === 'OPEN' &&
        unfinished.sessionUrl &&
        (!chosen || chosen === offerId(unfinished))
      )
        return reply.redirect(unfinished.sessionUrl, 303);
      if (offer === undefined) return show('pay');
      if (unfinished !== undefined && offerId(unfinished) !== offer.id) {
        const closed = await advance(unfinished.attemptId, { isUnwanted: true });
        if (closed?.state !== 'ENDED') return show('pay');
      }
      if (offer.provider === transfer) {
        const { merchantId, serviceOrderId } = order;
        const reference = creditorReferenceOf(Number(serviceOrderId));
        await openTransfers(store).choose({ reference, orderToken, merchantId });
        return show('transfer');
      }
      const attempt = await startAttempt(deps, { orderToken, order, offer, locale });
      if (attempt?.state === 'OPEN' && attempt.sessionUrl) return reply.redirect(attempt.sessionUrl, 303);
      return show('pay');
    },
  );

  app.get<{ Params: { attemptId: string }; Querystring: { left?: string; n?: string } }>(
    '/back/:attemptId',
    async (request, reply) => {
      const { attemptId } = request.params;
      const refreshes = Number(request.query.n ?? 0);
      let attempt = await store.find(attemptId);
      if (attempt === undefined) return sendMessage(reply, 'unknown');
      const { orderToken } = attempt;
      const { locale, chosen } = languageFor(request, attempt.locale);
      const choicePath = inLanguage(`/pay/${orderToken}`, chosen);
      if (request.query.left !== undefined && attempt.state === 'OPEN') {
        // At Stripe, the customer can still pay. At Mollie, the payment of a customer who leaves has ended.
        attempt = (await advance(attemptId)) ?? attempt;
        if (attempt.state === 'OPEN') return reply.redirect(choicePath, 303);
      }
      // Nothing is due for an attempt that was looked at for the last time, and its key may have been erased.
      if (!isDecided(attempt) || attempt.dueAt !== null)
        attempt = await advanceUntil(advance, attempt, (continued) => refreshes > 0 || isDecided(continued));
      const order = await gateway.resolve(orderToken);
      if (order === undefined) return sendMessage(reply, 'unknown');
      if (!isDecided(attempt) && refreshes < refreshesMax) {
        const { waitingTitle: title, waitingText } = textsOf(locale);
        const url = inLanguage(`/back/${attemptId}`, chosen, { n: `${refreshes + 1}` });
        const refresh = { seconds: refreshSeconds, url };
        const body = orderBody(order, locale, html`<h2>${title}</h2><p role="status">${waitingText}</p>`);
        return sendPage(reply, { locale, title, body, order, script: waitScript, refresh });
      }
      const mayTryAgain = attempt.state === 'ENDED' && order.orderStatus === OrderStatus.UN_PAID;
      return reply.redirect(mayTryAgain ? choicePath : order.returnUrl, 303);
    },
  );
}

/** Why an attempt ends that the customer left. After any other end, the customer is told that the payment failed. */
const reasonsOfCustomers: ReadonlySet<string> = new Set(['expired', 'canceled', 'abandoned', 'not_opened']);

/** Whether the customer has paid, although the order may not show it yet. */
const isBeingPaid = ({ state }: Attempt) => state === 'CLAIMED' || state === 'CAPTURED';

/** Whether the customer no longer needs to wait for the attempt. */
const isDecided = ({ state }: Attempt) => ['RECORDED', 'OWED', 'REFUNDED', 'ENDED'].includes(state);

async function sendChoice(deps: PageDeps, reply: FastifyReply, order: CheckoutOrder): Promise<FastifyReply> {
  const { orderToken } = reply.request.params as { orderToken: string };
  const [offers, newest] = await Promise.all([offersFor(deps, orderToken, order), deps.store.newest(orderToken)]);
  const { locale } = languageFor(reply.request, newest?.locale ?? order.customerLocale);
  const texts = textsOf(locale);
  const isOpen = newest?.state === 'OPEN';
  const mayRetry = newest?.state === 'ENDED' && offers.length > 0;
  const hasFailed = mayRetry && !reasonsOfCustomers.has(newest.reason ?? '');
  const notice = hasFailed ? html`<p class="notice" role="status">${texts.declined}</p>` : '';
  const form = (content: Html) =>
    html`<form class="actions" method="post" action="/pay/${orderToken}">${languageField(locale)}${content}</form>`;
  const openUntil = isOpen
    ? html`<p>${withValue(texts.openUntil, localTime(newest.sessionEndsAt.getTime(), locale))}</p>
${form(html`<button class="button main" name="method" value="${offerId(newest)}">${texts.continue}</button>`)}`
    : '';
  const isKept = isOpen && deps.providers.get(newest.provider)?.keepsSessions;
  const others = isKept ? [] : offers.filter(({ id }) => !isOpen || id !== offerId(newest));
  const buttons = others.map(
    ({ id, method }, index) =>
      html`<button class="button${index === 0 && !isOpen ? ' main' : ''}" name="method" value="${id}">${texts[method.name as 'card'] ?? method.name}</button>`,
  );
  const choice = buttons.length === 0 ? '' : form(html`<h2 class="label">${texts.choose}</h2>${buttons}`);
  const none = html`<p>${withValue(texts.notPayableHere, order.merchantName)}</p>`;
  const content = html`${notice}${openUntil}${choice}${buttons.length === 0 && !isOpen ? none : ''}
${backLink(order.returnUrl, texts)}`;
  const title = payTitle(order.merchantName, texts);
  return sendPage(reply, { locale, title, body: orderBody(order, locale, content), order });
}

interface Start {
  readonly orderToken: string;
  readonly order: CheckoutOrder;
  readonly offer: Offer;
  readonly locale: PageLocale;
}

/**
 * Returns the order's attempt with the chosen method: the unfinished one, or a new one; `undefined` if an attempt with
 * another method started at the same time.
 */
async function startAttempt(deps: PageDeps, { orderToken, order, offer, locale }: Start): Promise<Attempt | undefined> {
  const { store, advance } = deps;
  const started = await store.start({
    orderToken,
    merchantId: order.merchantId,
    orderId: order.orderId,
    serviceOrderId: Number(order.serviceOrderId),
    provider: offer.provider.name,
    connectionId: offer.connectionId,
    method: offer.method.name,
    amountHundredths: amountOf(order),
    currency: order.orderCurrency,
    locale,
    sessionEndsAt: new Date(Date.now() + sessionMs),
  });
  if (started === undefined || offerId(started) !== offer.id) return undefined;
  // A double click: the first request may be opening the session.
  return advanceUntil(advance, started, ({ state }) => state !== 'NEW');
}

/** Continues an attempt until the customer need not wait for it any longer. Returns it. */
async function advanceUntil(
  advance: Advance,
  attempt: Attempt,
  isDone: (attempt: Attempt) => boolean,
): Promise<Attempt> {
  const waitUntilMs = performance.now() + backWaitMs;
  for (;;) {
    const continued = (await advance(attempt.attemptId)) ?? attempt;
    if (isDone(continued) || performance.now() > waitUntilMs) return continued;
    await sleep(backPollMs);
  }
}
