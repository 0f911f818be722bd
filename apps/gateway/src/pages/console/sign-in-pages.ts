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

interface SignedOut {
  /** Begins a sign-in with OpenID Connect. */
  readonly openIdAddress: string | undefined;
  /** The input of the person in a form before the session ended. */
  readonly entered: URLSearchParams | undefined;
}

/**
 * Renders the page for people without a session. What they entered stays in the page only. Once they are signed in,
 * they send it to the same address, which shows their form again because the token in it is missing.
 */
export function signedOutPage(language: ConsoleLanguage, { openIdAddress, entered }: SignedOut): Promise<string> {
  const texts = textsIn(language);
  const { sessionMs, idleMs } = consoleLimits;
  const text = filled(texts.signedOutText, { hours: sessionMs / 3_600_000, idle: idleMs / minuteMs });
  const fields = [...(entered ?? [])].filter(([name]) => name !== 'form_token');
  const kept =
    fields.length > 0 &&
    html`<p>${texts.keptText}</p>
<form method="post">${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button class="button">${texts.continue}</button></form>`;
  const target = kept ? html` target="_blank"` : '';
  const signIn =
    openIdAddress && html`<p><a class="button main" href="${openIdAddress}"${target}>${texts.openId}</a></p>`;
  return pageWithoutHeader(language, texts.signedOut, html`<p>${text}</p>${signIn || ''}${kept || ''}`);
}

/**
 * Renders the page to which the OpenID Connect provider redirects the browser. The page links to `next`: to the
 * console, or to another attempt to sign in.
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
