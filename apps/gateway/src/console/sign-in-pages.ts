import { consoleLimits } from '@order-gateway/domain/accounts';
import { html } from 'hono/html';
import { type ConsoleLanguage, filled, pageWithoutHeader, textsIn } from './layout.ts';
import type { OpenIdProblem } from './openid-problem.ts';

const minuteMs = 60_000;

/**
 * Renders the page of a one-time link. The form has no action, so it is sent to the address of the page. With
 * `hasEnded`, renders the page of a link that has expired, was used or never existed.
 */
export function signInPage(language: ConsoleLanguage, { hasEnded = false } = {}): Promise<string> {
  const texts = textsIn(language);
  if (hasEnded) {
    const text = filled(texts.signInEndedText, { minutes: consoleLimits.linkMs / minuteMs });
    return pageWithoutHeader(language, texts.signInEnded, html`<p>${text}</p>`);
  }
  return pageWithoutHeader(
    language,
    texts.signIn,
    html`<p>${texts.signInText}</p>
<form method="post"><button class="button main">${texts.signIn}</button></form>`,
  );
}

/** Renders the page for people without a session. `openIdAddress` begins a sign-in with OpenID Connect. */
export function signedOutPage(language: ConsoleLanguage, openIdAddress?: string): Promise<string> {
  const texts = textsIn(language);
  const { sessionMs, idleMs } = consoleLimits;
  const text = filled(texts.signedOutText, { hours: sessionMs / 3_600_000, idle: idleMs / minuteMs });
  const button =
    openIdAddress === undefined ? '' : html`<p><a class="button main" href="${openIdAddress}">${texts.openId}</a></p>`;
  return pageWithoutHeader(language, texts.signedOut, html`<p>${text}</p>${button}`);
}

/**
 * Renders the page to which the OpenID Connect provider redirects the browser. The page links to `next`: to the console,
 * or to another attempt to sign in.
 */
export function openIdPage(
  language: ConsoleLanguage,
  outcome: 'signedIn' | OpenIdProblem['kind'],
  next: string,
): Promise<string> {
  const texts = textsIn(language);
  const [title, text, link] = {
    signedIn: [texts.openIdDone, '', texts.continue],
    account: [texts.openIdAccount, texts.openIdAccountText, texts.openId],
    expired: [texts.openIdExpired, texts.openIdExpiredText, texts.openId],
    provider: [texts.openIdProvider, texts.openIdProviderText, texts.openId],
    configuration: [texts.openIdConfiguration, texts.openIdConfigurationText, texts.openId],
  }[outcome] as [string, string, string];
  return pageWithoutHeader(language, title, html`${text && html`<p>${text}</p>`}<p><a href="${next}">${link}</a></p>`);
}
