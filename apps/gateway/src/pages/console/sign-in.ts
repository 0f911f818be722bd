import {
  type ConsolePerson,
  type ConsoleSessionStore,
  consoleTokenForm,
  createConsoleToken,
  hashSecret,
} from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { pathPrefixOf } from '@order-gateway/domain/links';
import { failed } from '@order-gateway/domain/result';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { takeBody } from '../../calls/receive.ts';
import { admitUnauthenticated } from '../../http/admit-unauthenticated.ts';
import { isForm, isFromAnotherSite, startReading } from '../../http/requests.ts';
import { consoleHeaders } from './layout.ts';
import type { OpenId } from './openid.ts';
import type { OpenIdProblem } from './openid-problem.ts';
import { languageOf, sendFailure, sendHtml } from './replies.ts';
import { endedOpenIdCookie, openIdCookies, openIdSecretsIn, sessionCookie, sessionTokenIn } from './session-cookie.ts';
import { openIdPage, signInPage } from './sign-in-pages.ts';
import { storedResult, type VisitDeps } from './visit.ts';

/** The parts of the gateway that the sign-in uses. */
export interface SignInDeps {
  readonly deps: VisitDeps;
  readonly sessions: ConsoleSessionStore;
  /** Absent: people sign in only with links. */
  readonly openId: OpenId | undefined;
}

/**
 * Adds the routes with which people sign in. GET of a one-time link shows a button and changes nothing, because link
 * previews and scanners open links.
 */
export function signInRoutes(app: FastifyInstance, { deps, sessions, openId }: SignInDeps): void {
  admitUnauthenticated(app, deps, sendFailure);
  const consoleAddress = () => `${pathPrefixOf(deps.baseUrl())}/console`;
  /**
   * Starts a new session for the digest of a link or for a person, and adds its cookie to the response. Ends the
   * session that the browser already has. If the sign-in is rejected, returns the failure of a call without
   * credentials.
   */
  const start = async (
    reply: FastifyReply,
    by: Uint8Array | ConsolePerson | undefined,
    replacedDigest: Uint8Array | undefined,
  ): Promise<Failure | undefined> => {
    const { call } = reply.request;
    const token = createConsoleToken(deps.randomBytes);
    const signedIn = await call.run(async () =>
      by === undefined
        ? failed<Failure>({ kind: 'unauthenticated' })
        : storedResult(await sessions.signIn(by, hashSecret(token), replacedDigest, call.timeLeftMs())),
    );
    if (!signedIn.ok) {
      const isRejected = signedIn.failure.kind === 'unauthenticated';
      return isRejected ? call.fail(await deps.calls.unauthenticatedCalls.reject(call.peer)) : signedIn.failure;
    }
    call.succeed('ok');
    reply.header('set-cookie', sessionCookie(token, deps.baseUrl())).headers(consoleHeaders);
    return undefined;
  };
  app.get('/console/sign-in/:token', { config: { operation: 'ConsoleSignIn' } }, async (request, reply) => {
    request.call.succeed('ok');
    return sendHtml(reply, signInPage(languageOf(request)));
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
    async handler(request, reply) {
      const { token } = request.params;
      const session = sessionTokenIn(request.headers.cookie, deps.baseUrl());
      const failure = await start(
        reply,
        consoleTokenForm.test(token) ? hashSecret(token) : undefined,
        session === undefined ? undefined : hashSecret(session),
      );
      if (failure === undefined) return reply.redirect(consoleAddress(), 303);
      if (failure.kind !== 'unauthenticated') return sendFailure(reply, failure);
      return sendHtml(reply.code(410), signInPage(languageOf(request), { hasEnded: true }));
    },
  });
  if (openId === undefined) return;
  const sendProblem = (reply: FastifyReply, status: 403 | 503, problem: OpenIdProblem) => {
    const isOfPerson = problem.kind === 'account' || problem.kind === 'expired';
    deps.logger[isOfPerson ? 'warn' : 'error'](problem, 'sign-in with OpenID Connect failed');
    return sendHtml(
      reply.code(status),
      openIdPage(languageOf(reply.request), problem.kind, `${consoleAddress()}/openid`),
    );
  };
  app.get('/console/openid', { config: { operation: 'ConsoleSignIn' } }, async (request, reply) => {
    const { call, headers, releaseSlot } = request;
    // Keeps the slots free for the payment pages while the provider does not respond.
    releaseSlot?.();
    const begun = await openId.begin();
    if (!begun.ok) {
      call.fail({ kind: 'unavailable' });
      return sendProblem(reply, 503, begun.failure);
    }
    call.succeed('ok');
    reply.header('set-cookie', openIdCookies(headers.cookie, begun.value.secrets, deps.baseUrl()));
    return reply.headers(consoleHeaders).redirect(begun.value.url, 303);
  });
  app.get('/console/openid/callback', { config: { operation: 'ConsoleSignIn' } }, async (request, reply) => {
    const { headers, url, releaseSlot } = request;
    releaseSlot?.();
    const [, query = ''] = /\?(.*)/s.exec(url) ?? [];
    const state = new URLSearchParams(query).get('state') ?? '';
    const secrets = openIdSecretsIn(headers.cookie, state, deps.baseUrl());
    // Secrets are used once, regardless of the outcome.
    if (secrets !== undefined) reply.header('set-cookie', endedOpenIdCookie(state, deps.baseUrl()));
    const completed = secrets === undefined ? failed(notBegun) : await openId.complete(query, secrets);
    const failure = await start(reply, completed.ok ? completed.value : undefined, secrets?.replacedDigest);
    if (failure === undefined) {
      // A redirect would be part of the navigation from the provider, with which browsers do not send the new cookie.
      reply.header('refresh', `0; url=${consoleAddress()}`);
      return sendHtml(reply, openIdPage(languageOf(request), 'signedIn', consoleAddress()));
    }
    if (failure.kind !== 'unauthenticated') return sendFailure(reply, failure);
    const problem = completed.ok ? notEnabled : completed.failure;
    // Anyone can make up a redirect, so a problem with it never counts as an outage of the gateway.
    return sendProblem(reply, problem.kind === 'provider' ? 503 : 403, problem);
  });
}

const notBegun: OpenIdProblem = { kind: 'expired', reason: 'the browser has no cookie of this sign-in' };

const notEnabled: OpenIdProblem = { kind: 'account', reason: 'the claim names no enabled merchant' };
