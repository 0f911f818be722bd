import { errorCatalogue } from '@order-gateway/contract/errors';
import {
  type ConsolePerson,
  type ConsoleSessionStore,
  consoleTokenForm,
  createConsoleToken,
  type FoundConsoleSession,
  hashSecret,
  randomBase62,
} from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { pathPrefixOf } from '@order-gateway/domain/links';
import { failed, success } from '@order-gateway/domain/result';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import type { GatewayDeps } from '../gateway-deps.ts';
import { admitUnauthenticated } from '../http/admit-unauthenticated.ts';
import { headersOfFailure } from '../http/problem.ts';
import { isEmbeddedElsewhere, isForm, isFromAnotherSite, startReading } from '../http/requests.ts';
import type { Room } from '../http/server.ts';
import { bodyBytesMax } from '../intake/body/call-body.ts';
import { type Receive, takeBody } from '../intake/receive.ts';
import type { Members, Operation } from '../operations/operation.ts';
import type { Html } from '../payment-page/html-page.ts';
import { messageOf } from '../start/process.ts';
import { brandPages } from './brand.ts';
import { exportPages } from './export-orders.ts';
import { isAccepted, readForm } from './form.ts';
import { consoleHeaders, consolePage, filled, languageFor, plainPage, textsIn } from './layout.ts';
import { newOrderPages } from './new-order.ts';
import type { OpenId } from './openid.ts';
import { orderPages } from './order.ts';
import { ordersPages } from './orders.ts';
import { overviewPages } from './overview.ts';
import { secretPages } from './secrets.ts';
import {
  formTokenOf,
  isFormToken,
  openIdCookie,
  openIdSecretIn,
  sessionCookie,
  sessionTokenIn,
} from './session-cookie.ts';
import { sessionPages } from './sessions.ts';
import { openIdPage, signedOutPage, signInPage } from './sign-in.ts';
import { failurePage, failureText, type Page, type Response, redirect, storedResult, type Visit } from './visit.ts';
import { webhookPages } from './webhooks.ts';

/** The number of characters of the key of a checksum that the console makes. */
const checksumKeyLength = 43;

const pages: readonly Page[] = [
  { method: 'GET', path: '', isForAll: true, respond: async () => redirect('/overview') },
  ...overviewPages,
  ...ordersPages,
  ...exportPages,
  ...orderPages,
  ...newOrderPages,
  ...webhookPages,
  ...secretPages,
  ...brandPages,
  ...sessionPages,
];

interface ConsoleDeps {
  readonly deps: GatewayDeps;
  readonly operations: readonly Operation[];
  readonly sessions: ConsoleSessionStore;
  /** Absent: people sign in only with links. */
  readonly openId: OpenId | undefined;
}

/** Creates the routes of the console, all of them under `/console`. */
export function consoleRoutes(console: ConsoleDeps): Room {
  return async (app, receive) => {
    app.register(async (scope) => signInRoutes(scope, console));
    for (const page of pages) {
      app.route({
        method: page.method,
        url: `/console${page.path}`,
        config: { operation: 'Console' },
        handler: (request, reply) => visitPage(console, receive, page, request, reply),
      });
    }
  };
}

/** A one-time link: GET shows a button and changes nothing, because previews and scanners open links. */
function signInRoutes(app: FastifyInstance, { deps, sessions, openId }: ConsoleDeps): void {
  admitUnauthenticated(app, deps, sendFailure);
  /** Starts a session, unless there is no link or person. A session that the browser already has is never continued. */
  const signIn = async (
    reply: FastifyReply,
    by: Uint8Array | ConsolePerson | undefined,
    provided?: { readonly problem: string | undefined },
  ): Promise<FastifyReply> => {
    const { call } = reply.request;
    const address = `${pathPrefixOf(deps.baseUrl())}/console`;
    const token = createConsoleToken(deps.randomBytes);
    const signedIn = await call.run(async () =>
      by === undefined
        ? failed<Failure>({ kind: 'unauthenticated' })
        : storedResult(await sessions.signIn(by, hashSecret(token), call.timeLeftMs())),
    );
    const language = languageOf(reply.request);
    if (!signedIn.ok) {
      const isRejected = signedIn.failure.kind === 'unauthenticated';
      const failure = isRejected ? call.fail(await deps.unauthenticatedCalls.reject(call.peer)) : signedIn.failure;
      if (failure.kind !== 'unauthenticated') return sendFailure(reply, failure);
      if (provided === undefined) return sendPlain(reply.code(410), signInPage(language, { hasEnded: true }));
      deps.logger.warn({ reason: provided.problem ?? 'unknown person' }, 'sign-in with OpenID Connect rejected');
      return sendPlain(reply.code(403), openIdPage(language, 'rejected', `${address}/openid`));
    }
    call.succeed('ok');
    reply.header('set-cookie', sessionCookie(token, deps.baseUrl())).headers(consoleHeaders);
    if (provided === undefined) return reply.redirect(address, 303);
    // A redirect would be part of the navigation from the provider, with which browsers do not send the new cookie.
    reply.header('refresh', `0; url=${address}`);
    return sendPlain(reply, openIdPage(language, 'signedIn', address));
  };
  app.get('/console/sign-in/:token', { config: { operation: 'ConsoleSignIn' } }, async (request, reply) => {
    request.call.succeed('ok');
    return sendPlain(reply, signInPage(languageOf(request)));
  });
  app.route<{ Params: { token: string } }>({
    method: 'POST',
    url: '/console/sign-in/:token',
    config: { operation: 'ConsoleSignIn' },
    async onRequest({ headers }, reply) {
      if (isFromAnotherSite(headers, deps.baseUrl())) return sendFailure(reply, { kind: 'permission_denied' });
      if (!isForm(headers)) return sendFailure(reply, { kind: 'unsupported_media_type' });
    },
    async preValidation(request, reply) {
      const body = await takeBody(request.call, startReading(deps, request, reply, { hasEnvelope: false }));
      if (!body.ok) return sendFailure(reply, body.failure);
    },
    handler: ({ params }, reply) =>
      signIn(reply, consoleTokenForm.test(params.token) ? hashSecret(params.token) : undefined),
  });
  if (openId === undefined) return;
  app.get('/console/openid', { config: { operation: 'ConsoleSignIn' } }, async ({ call }, reply) => {
    const begun = await openId.begin().catch(messageOf);
    if (typeof begun === 'string') {
      deps.logger.error({ reason: begun }, 'the provider of OpenID Connect does not respond');
      return sendFailure(reply, { kind: 'unavailable' });
    }
    call.succeed('ok');
    reply.header('set-cookie', openIdCookie(begun.secret, deps.baseUrl()));
    return reply.headers(consoleHeaders).redirect(begun.url, 303);
  });
  app.get('/console/openid/callback', { config: { operation: 'ConsoleSignIn' } }, async ({ headers, url }, reply) => {
    const [, query = ''] = /\?(.*)/s.exec(url) ?? [];
    const secret = openIdSecretIn(headers.cookie, deps.baseUrl());
    // A secret is used once, whatever the outcome.
    reply.header('set-cookie', openIdCookie(undefined, deps.baseUrl()));
    const person = await openId.complete(query, secret).catch(messageOf);
    return typeof person === 'string'
      ? signIn(reply, undefined, { problem: person })
      : signIn(reply, person, { problem: undefined });
  });
}

/** Receives the request of a person who is signed in, and sends the page's response. */
async function visitPage(
  { deps, operations, sessions, openId }: ConsoleDeps,
  receive: Receive,
  page: Page,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { call, headers } = request;
  const baseUrl = deps.baseUrl();
  const isPost = page.method === 'POST';
  if (isPost ? isFromAnotherSite(headers, baseUrl) : isEmbeddedElsewhere(headers)) {
    return sendFailure(reply, { kind: 'permission_denied' });
  }
  const token = sessionTokenIn(headers.cookie, baseUrl);
  const bodyForm = { hasEnvelope: false, messageBytesMax: page.fileBytesMax };
  let found: FoundConsoleSession | undefined;
  const received = await receive(call, {
    headers,
    bodyBytesMax: bodyBytesMax(bodyForm),
    isMediaTypeSupported: !isPost || isAccepted(headers, page.fileBytesMax !== undefined),
    accountKind: 'merchant',
    async authenticate(timeoutMs) {
      if (token === undefined) return failed({ kind: 'unauthenticated' });
      const session = storedResult(await sessions.find(hashSecret(token), timeoutMs));
      if (!session.ok) return session;
      found = session.value;
      return success(found.merchant);
    },
    startReading: isPost ? () => startReading(deps, request, reply, bodyForm) : undefined,
  });
  if (!received.ok || token === undefined || found === undefined) {
    const failure: Failure = received.ok ? { kind: 'unauthenticated' } : received.failure;
    if (failure.kind !== 'unauthenticated') return sendFailure(reply, failure);
    call.fail(failure);
    if (token !== undefined) reply.header('set-cookie', sessionCookie(undefined, baseUrl));
    return sendPlain(
      reply.code(401),
      signedOutPage(languageOf(request), openId && `${pathPrefixOf(baseUrl)}/console/openid`),
    );
  }
  const sent = await readForm(received.value, headers);
  if (!sent.ok) return sendFailure(reply, sent.failure);
  const sessionDigest = hashSecret(token);
  const language = languageOf(request);
  const { clientId, session, merchant } = found;
  const signedIn = {
    clientId,
    // The key of the checksums that the console makes. No client secret enters the browser or the console.
    clientSecret: randomBase62(checksumKeyLength, deps.randomBytes),
    sessionDigest,
  };
  const visit: Visit = {
    ...found,
    deps,
    call,
    signedIn,
    sessions,
    sessionDigest,
    language,
    texts: textsIn(language),
    params: Object(request.params),
    query: new URLSearchParams(/\?.*/s.exec(request.url)?.[0]),
    ...sent.value,
    mayManage: session.role === 'manage',
    formToken: html`<input type="hidden" name="form_token" value="${formTokenOf(token)}">`,
    link: (path) => `${pathPrefixOf(baseUrl)}/console${path}`,
    async perform<Body>(method: Operation['method'], members: Members, timeoutMs?: number) {
      const operation = operations.find((one) => one.method === method);
      if (operation === undefined) throw new Error(`no operation ${method.name}`);
      if (timeoutMs === undefined) return call.perform(operation, members, ({ body }) => body as Body, signedIn);
      const endsAt = performance.now() + timeoutMs;
      const reply = await operation.handle(members, {
        ...signedIn,
        account: merchant,
        isStrict: false,
        waitMs: 0,
        timeLeftMs: () => endsAt - performance.now(),
        concerns() {},
        pause: (wait) => call.pause(wait),
      });
      return reply.ok ? success(reply.value.body as Body) : reply;
    },
    record: (name, details) =>
      call.run(async () => storedResult(await sessions.record(sessionDigest, { name, details }, call.timeLeftMs()))),
  };
  if (isPost && !isFormToken(visit.form.get('form_token'), token)) {
    return sendRejected(reply, visit, visit.texts.otherSite);
  }
  if (!page.isForAll && !visit.mayManage) return sendRejected(reply, visit, visit.texts.notAllowedText);
  const response = await call.run(async () => success(await page.respond(visit)));
  return sendResponse(reply, visit, response.ok ? response.value : failurePage(visit, response.failure));
}

const languageOf = ({ headers }: FastifyRequest) => languageFor(headers['accept-language']);

async function sendPlain(reply: FastifyReply, text: Promise<string>): Promise<FastifyReply> {
  return reply.headers(htmlHeaders(reply)).send(await text);
}

/** Sends a failure to someone who is not signed in. */
function sendFailure(reply: FastifyReply, failure: Failure): Promise<FastifyReply> {
  const language = languageOf(reply.request);
  reply.request.call.fail(failure);
  reply.code(errorCatalogue[failure.kind].httpStatus).headers(headersOfFailure(failure));
  return sendPlain(
    reply,
    plainPage(language, textsIn(language).failureTitle, html`<p role="alert">${failureText(failure)}</p>`),
  );
}

function sendRejected(reply: FastifyReply, visit: Visit, text: string): Promise<FastifyReply> {
  const { texts, link } = visit;
  const content = html`<p role="alert">${text}</p>
<p><a href="${link('/orders')}">${texts.orders}</a></p>`;
  return sendResponse(reply, visit, {
    kind: 'page',
    title: texts.notAllowed,
    content,
    failure: { kind: 'permission_denied' },
  });
}

async function sendResponse(reply: FastifyReply, visit: Visit, response: Response): Promise<FastifyReply> {
  const { call, deps, language, link } = visit;
  if (response.kind === 'redirect') {
    call.succeed('ok');
    if (response.endsSession) reply.header('set-cookie', sessionCookie(undefined, deps.baseUrl()));
    return reply.headers(consoleHeaders).redirect(link(response.path), 303);
  }
  if (response.kind === 'file') {
    const disposition = `attachment; filename="${response.name}"`;
    reply.headers({ ...consoleHeaders, 'content-type': response.type, 'content-disposition': disposition });
    return reply.send(response.content);
  }
  const { title, content, failure } = response;
  if (failure === undefined) call.succeed('ok');
  else {
    call.fail(failure);
    reply.code(errorCatalogue[failure.kind].httpStatus).headers(headersOfFailure(failure));
  }
  return sendPlain(reply, consolePage({ language, title, header: headerOf(visit, reply.request.url), content }));
}

function htmlHeaders(reply: FastifyReply): Record<string, string> {
  const language = languageOf(reply.request);
  return { ...consoleHeaders, 'content-type': 'text/html; charset=utf-8', 'content-language': language };
}

/** The bar with the merchant's name, the pages and the person. */
function headerOf({ texts, merchant, session, mayManage, link, formToken }: Visit, url: string): Html {
  const entries = [
    ['/overview', texts.overview],
    ['/orders', texts.orders],
    ...(mayManage ? [['/new-order', texts.newLink]] : []),
    ['/webhooks', texts.webhooks],
    ...(mayManage
      ? [
          ['/secrets', texts.secrets],
          ['/brand', texts.brand],
        ]
      : []),
    ['/sessions', texts.sessions],
  ];
  const links = entries.map(([path = '', text]) => {
    const isCurrent = url.startsWith(link(path)) ? html` aria-current="page"` : '';
    return html`<a href="${link(path)}"${isCurrent}>${text}</a>`;
  });
  return html`<a class="skip" href="#content">${texts.skip}</a>
<header>
${merchant.mode === 'test' ? html`<p class="test">${texts.testMode}</p>` : ''}
<div class="bar">
<span class="shop"><bdi>${merchant.name}</bdi></span>
<nav aria-label="${texts.console}">${links}</nav>
<span class="soft">${filled(texts.signedInAs, { name: session.name })}</span>
<form method="post" action="${link('/sign-out')}">${formToken}<button class="button plain">${texts.signOut}</button></form>
</div>
</header>`;
}
