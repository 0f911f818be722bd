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
import { messageOf } from '@order-gateway/runtime/process';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { admitUnauthenticated } from '../http/admit-unauthenticated.ts';
import { isForm, isFromAnotherSite, startReading } from '../http/requests.ts';
import { takeBody } from '../intake/receive.ts';
import { consoleHeaders } from './layout.ts';
import type { OpenId } from './openid.ts';
import { languageOf, sendFailure, sendHtml } from './replies.ts';
import { openIdCookie, openIdSecretIn, sessionCookie, sessionTokenIn } from './session-cookie.ts';
import { openIdPage, signInPage } from './sign-in-pages.ts';
import { storedResult } from './visit.ts';

/** What the sign-in needs from the gateway. */
export interface SignInDeps {
  readonly deps: GatewayDeps;
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
  /**
   * Starts a new session for the digest of a link or for a person, or rejects the sign-in. `viaOpenId` is present for
   * OpenID Connect, with the reason for a rejection. A session that the browser already has ends.
   */
  const signIn = async (
    reply: FastifyReply,
    by: Uint8Array | ConsolePerson | undefined,
    viaOpenId?: { readonly problem: string | undefined },
  ): Promise<FastifyReply> => {
    const { call } = reply.request;
    const address = `${pathPrefixOf(deps.baseUrl())}/console`;
    const token = createConsoleToken(deps.randomBytes);
    const replacedToken = sessionTokenIn(reply.request.headers.cookie, deps.baseUrl());
    const replacedDigest = replacedToken === undefined ? undefined : hashSecret(replacedToken);
    const signedIn = await call.run(async () =>
      by === undefined
        ? failed<Failure>({ kind: 'unauthenticated' })
        : storedResult(await sessions.signIn(by, hashSecret(token), replacedDigest, call.timeLeftMs())),
    );
    const language = languageOf(reply.request);
    if (!signedIn.ok) {
      const isRejected = signedIn.failure.kind === 'unauthenticated';
      const failure = isRejected ? call.fail(await deps.unauthenticatedCalls.reject(call.peer)) : signedIn.failure;
      if (failure.kind !== 'unauthenticated') return sendFailure(reply, failure);
      if (viaOpenId === undefined) return sendHtml(reply.code(410), signInPage(language, { hasEnded: true }));
      deps.logger.warn({ reason: viaOpenId.problem ?? 'unknown person' }, 'sign-in with OpenID Connect rejected');
      return sendHtml(reply.code(403), openIdPage(language, 'rejected', `${address}/openid`));
    }
    call.succeed('ok');
    reply.header('set-cookie', sessionCookie(token, deps.baseUrl())).headers(consoleHeaders);
    if (viaOpenId === undefined) return reply.redirect(address, 303);
    // A redirect would be part of the navigation from the provider, with which browsers do not send the new cookie.
    reply.header('refresh', `0; url=${address}`);
    return sendHtml(reply, openIdPage(language, 'signedIn', address));
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
    handler: ({ params }, reply) =>
      signIn(reply, consoleTokenForm.test(params.token) ? hashSecret(params.token) : undefined),
  });
  if (openId === undefined) return;
  app.get('/console/openid', { config: { operation: 'ConsoleSignIn' } }, async ({ call, releaseSlot }, reply) => {
    // Keeps the slots free for the payment pages while the provider does not respond.
    releaseSlot?.();
    const begun = await openId.begin().catch(messageOf);
    if (typeof begun === 'string') {
      deps.logger.error({ reason: begun }, 'the provider of OpenID Connect does not respond');
      return sendFailure(reply, { kind: 'unavailable' });
    }
    call.succeed('ok');
    reply.header('set-cookie', openIdCookie(begun.secret, deps.baseUrl()));
    return reply.headers(consoleHeaders).redirect(begun.url, 303);
  });
  app.get('/console/openid/callback', { config: { operation: 'ConsoleSignIn' } }, async (request, reply) => {
    const { headers, url, releaseSlot } = request;
    releaseSlot?.();
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
