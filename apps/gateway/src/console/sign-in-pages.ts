import { consoleLimits } from '@order-gateway/domain/accounts';
import { html } from 'hono/html';
import { type ConsoleLanguage, filled, plainPage, textsIn } from './layout.ts';

const minuteMs = 60_000;

/**
 * The page of a one-time link. The form has no action, so it is sent to the address of the page. A link that has ended,
 * was used or never existed shows the same page.
 */
export function signInPage(language: ConsoleLanguage, { hasEnded = false } = {}): Promise<string> {
  const texts = textsIn(language);
  if (hasEnded) {
    const text = filled(texts.signInEndedText, { minutes: consoleLimits.linkMs / minuteMs });
    return plainPage(language, texts.signInEnded, html`<p>${text}</p>`);
  }
  return plainPage(
    language,
    texts.signIn,
    html`<p>${texts.signInText}</p>
<form method="post"><button class="button main">${texts.signIn}</button></form>`,
  );
}

/** The page for everyone without a session. `openIdAddress` is where a sign-in with OpenID Connect begins. */
export function signedOutPage(language: ConsoleLanguage, openIdAddress?: string): Promise<string> {
  const texts = textsIn(language);
  const { sessionMs, idleMs } = consoleLimits;
  const text = filled(texts.signedOutText, { hours: sessionMs / 3_600_000, idle: idleMs / minuteMs });
  const button =
    openIdAddress === undefined ? '' : html`<p><a class="button main" href="${openIdAddress}">${texts.openId}</a></p>`;
  return plainPage(language, texts.signedOut, html`<p>${text}</p>${button}`);
}

/** The page to which the provider of OpenID Connect leads, with a link to the next one. */
export function openIdPage(language: ConsoleLanguage, outcome: 'signedIn' | 'rejected', next: string): Promise<string> {
  const texts = textsIn(language);
  const [title, text, link] =
    outcome === 'signedIn'
      ? [texts.openIdDone, '', texts.continue]
      : [texts.openIdRejected, html`<p>${texts.openIdRejectedText}</p>`, texts.openId];
  return plainPage(language, title, html`${text}<p><a href="${next}">${link}</a></p>`);
}
