import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { consoleLimits, consoleTokenForm, createConsoleToken } from '@order-gateway/domain/accounts';
import { equalsSecret } from '@order-gateway/domain/signing';
import type { SecretsKeys } from '@order-gateway/runtime/encryption';
import { parse, serialize } from 'hono/utils/cookie';

/** Differs from the cookie of the merchants' console, because browsers send a host's cookies to all of its ports. */
const cookieName = 'order-gateway-operator';

/** The path of the operators' view and the prefix of the paths of its pages. */
export const operatorPath = '/operator';

/** Returns the address of a new one-time link. The gateway recognizes it by its signature, so it is not stored. */
export function createOperatorLink([key]: SecretsKeys, adminPort: number): string {
  const content = `${Date.now()}.${createConsoleToken(randomBytes)}`;
  return `http://localhost:${adminPort}${operatorPath}/sign-in/${content}.${signatureOf(key, content)}`;
}

/** Creates the operators' sign-in. Keeps its sessions and used links in the memory of this process. */
export function createOperatorAccess([key]: SecretsKeys, now = Date.now) {
  // A link that was printed before the start may have been used before it.
  const startedMs = now();
  const usedLinks = new Map<string, number>();
  const sessions = new Map<string, { readonly createdMs: number; readonly lastSeenMs: number }>();
  return {
    /** Uses up a link. Returns the Set-Cookie header of a new session; `undefined` if the link does not work. */
    signIn(link: string): string | undefined {
      const content = link.slice(0, link.lastIndexOf('.'));
      const issuedMs = Number.parseInt(content, 10);
      const isSigned = equalsSecret(link, `${content}.${signatureOf(key, content)}`);
      const oldestMs = now() - consoleLimits.linkMs;
      if (!isSigned || issuedMs <= Math.max(oldestMs, startedMs) || usedLinks.has(content)) return undefined;
      for (const [used, usedMs] of usedLinks) if (usedMs <= oldestMs) usedLinks.delete(used);
      usedLinks.set(content, issuedMs);
      const token = createConsoleToken(randomBytes);
      sessions.set(token, { createdMs: now(), lastSeenMs: now() });
      const [oldest = ''] = sessions.keys();
      if (sessions.size > consoleLimits.sessionsMax) sessions.delete(oldest);
      return cookieOf(token, consoleLimits.sessionMs / 1_000);
    },
    /** Whether a Cookie header has the token of a live session. Counts as a use of the session. */
    isSignedIn(header: string | undefined): boolean {
      const token = tokenIn(header);
      const { createdMs = 0, lastSeenMs = 0 } = sessions.get(token) ?? {};
      const isLive = now() - createdMs < consoleLimits.sessionMs && now() - lastSeenMs < consoleLimits.idleMs;
      if (isLive) sessions.set(token, { createdMs, lastSeenMs: now() });
      return isLive;
    },
    /** Ends the session. Returns the Set-Cookie header that removes the cookie. */
    signOut(header: string | undefined): string {
      sessions.delete(tokenIn(header));
      return cookieOf('', 0);
    },
  };
}

function cookieOf(token: string, maxAge: number): string {
  return serialize(cookieName, token, { path: operatorPath, httpOnly: true, sameSite: 'Strict', maxAge });
}

function tokenIn(header = ''): string {
  const { [cookieName]: token = '' } = parse(header, cookieName);
  return consoleTokenForm.test(token) ? token : '';
}

/** Signs a text with a separate key, which is derived from the given one (RFC 5869). */
function signatureOf(key: Uint8Array, content: string): string {
  const linkKey = new Uint8Array(hkdfSync('sha256', key, '', 'operator links', 32));
  return createHmac('sha256', linkKey).update(content).digest('base64url');
}
