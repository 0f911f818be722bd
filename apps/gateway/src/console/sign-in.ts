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

/** The page for everyone without a session. */
export function signedOutPage(language: ConsoleLanguage): Promise<string> {
  const texts = textsIn(language);
  const { sessionMs, idleMs } = consoleLimits;
  const text = filled(texts.signedOutText, { hours: sessionMs / 3_600_000, idle: idleMs / minuteMs });
  return plainPage(language, texts.signedOut, html`<p>${text}</p>`);
}
