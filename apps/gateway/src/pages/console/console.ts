import { errorCatalogue } from '@order-gateway/contract/errors';
import { type FoundConsoleSession, hashSecret, randomBase62 } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { pathPrefixOf } from '@order-gateway/domain/links';
import { failed, success } from '@order-gateway/domain/result';
import type { Html } from '@order-gateway/pages/html-page';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import { bodyBytesMax } from '../../calls/body/call-body.ts';
import type { Members, Operation } from '../../calls/operation.ts';
import { takeBody } from '../../calls/receive.ts';
import { admitUnauthenticated } from '../../http/admit-unauthenticated.ts';
import { headersOfFailure } from '../../http/problem.ts';
import { isEmbeddedElsewhere, isFromAnotherSite, startReading } from '../../http/requests.ts';
import type { AddRoutes } from '../../http/server.ts';
import { brandPages } from './brand.ts';
import { exportPages } from './export-orders.ts';
import { isAccepted, readForm } from './forms.ts';
import { consoleHeaders, consolePage, filled, pageWithoutHeader, textsIn } from './layout.ts';
import { newOrderPages } from './new-order.ts';
import { orderPages } from './order.ts';
import { ordersPages } from './orders.ts';
import { overviewPages } from './overview.ts';
import { refundPages } from './refund.ts';
import { refusedPaymentsPages } from './refused-payments.ts';
import { languageOf, sendFailure, sendHtml } from './replies.ts';
import { secretPages } from './secrets.ts';
import { formTokenOf, isFormToken, sessionCookie, sessionTokenIn } from './session-cookie.ts';
import { sessionPages } from './sessions.ts';
import { type SignInDeps, signInRoutes } from './sign-in.ts';
import { signedOutPage } from './sign-in-pages.ts';
import { failurePage, type Page, type Response, redirect, storedResult, type Visit } from './visit.ts';
import { webhookPages } from './webhooks.ts';

/** The length of the key with which the console computes the checksum of an order. */
const checksumKeyLength = 43;

const pages: readonly Page[] = [
  { method: 'GET', path: '', isForAll: true, respond: async () => redirect('/overview') },
  ...overviewPages,
  ...refusedPaymentsPages,
  ...ordersPages,
  ...exportPages,
  ...orderPages,
  ...refundPages,
  ...newOrderPages,
  ...webhookPages,
  ...secretPages,
  ...brandPages,
  ...sessionPages,
];

interface ConsoleDeps extends SignInDeps {
  readonly operations: readonly Operation[];
}

/** Creates the routes of the console, all of them under `/console`. */
export function consoleRoutes(console: ConsoleDeps): AddRoutes {
  return (app) => {
    app.register(async (scope) => signInRoutes(scope, console));
    app.register(async (scope) => unknownRoutes(scope, console));
    for (const page of pages) {
      app.route({
        method: page.method,
        url: `/console${page.path}`,
        config: { operation: 'Console' },
        handler: (request, reply) => visitPage(console, page, request, reply),
      });
    }
  };
}

/** Adds the page for all other paths below `/console`, which is shown with or without a session. */
function unknownRoutes(app: FastifyInstance, { deps }: ConsoleDeps): void {
  admitUnauthenticated(app, deps, sendFailure);
  app.get('/console/*', { config: { operation: 'Console' } }, async (request, reply) => {
    const texts = textsIn(languageOf(request));
    request.call.fail({ kind: 'not_found' });
    const home = html`<p><a href="${pathPrefixOf(deps.baseUrl())}/console">${texts.overview}</a></p>`;
    return sendHtml(reply.code(404), pageWithoutHeader(languageOf(request), texts.noPage, home));
  });
}

/** Checks the session of a request, and sends the page's response. Without a session, sends the signed-out page. */
async function visitPage(
  { deps, operations, sessions, openId }: ConsoleDeps,
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
  const received = await deps.calls.receive(call, {
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
    const body = formPageOf(page) && (await takeBody(call, startReading(deps, request, reply, { hasEnvelope: false })));
    const entered = body?.ok ? await readForm(body.value, headers) : undefined;
    return sendHtml(
      reply.code(401),
      signedOutPage(languageOf(request), {
        openIdAddress: openId && `${pathPrefixOf(baseUrl)}/console/openid`,
        entered: entered?.ok ? entered.value.form : undefined,
      }),
    );
  }
  const sent = await readForm(received.value, headers);
  if (!sent.ok) return sendFailure(reply, sent.failure);
  const sessionDigest = hashSecret(token);
  const language = languageOf(request);
  const { clientId, session, merchant } = found;
  const signedIn = {
    clientId,
    // A random key for the checksum of an order, because the database stores only digests of client secrets.
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
      const operation = operations.find((candidate) => candidate.method === method);
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
  if (!page.isForAll && !visit.mayManage) return sendRejected(reply, visit, visit.texts.notAllowedText);
  if (isPost && !isFormToken(visit.form.get('form_token'), token)) return sendFormAgain(reply, visit, page);
  const response = await call.run(async () => success(await page.respond(visit)));
  return sendResponse(reply, visit, response.ok ? response.value : failurePage(visit, response.failure));
}

function sendRejected(reply: FastifyReply, visit: Visit, text: string): Promise<FastifyReply> {
  return sendResponse(reply, visit, failurePage(visit, { kind: 'permission_denied' }, visit.texts.notAllowed, text));
}

/**
 * Returns the page with the form that a page receives. It shows what the request contains. `undefined` if the form has
 * only a button.
 */
function formPageOf({ method, path }: Page): Page | undefined {
  return method === 'GET' ? undefined : pages.find((other) => other.method === 'GET' && other.path === path);
}

/** Rejects a form of another session. Sends the form again with what the person entered, but with a valid token. */
async function sendFormAgain(reply: FastifyReply, visit: Visit, page: Page): Promise<FastifyReply> {
  const { call, texts } = visit;
  const rendered = await call.run(async () => success(await formPageOf(page)?.respond(visit)));
  if (!rendered.ok || rendered.value?.kind !== 'page') return sendRejected(reply, visit, texts.otherSite);
  const { title, content, failure = { kind: 'permission_denied' } } = rendered.value;
  return sendResponse(reply, visit, {
    kind: 'page',
    title,
    content: html`<p class="error" role="alert">${texts.formAgain}</p>${content}`,
    failure,
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
  return sendHtml(reply, consolePage({ language, title, header: headerOf(visit, reply.request.url), content }));
}

/** Renders the header: the test mode notice, the merchant, the person who is signed in, and links to the pages. */
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
<form method="post" action="${link('/sign-out')}" class="row">${formToken}
<span class="soft">${filled(texts.signedInAs, { name: session.name })}</span>
<button class="button plain">${texts.signOut}</button>
</form>
<nav aria-label="${texts.console}">${links}</nav>
</div>
</header>`;
}
