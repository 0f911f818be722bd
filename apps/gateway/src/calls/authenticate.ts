import {
  type Account,
  type AccountDirectory,
  type AccountLookup,
  areWellFormed,
  hashSecret,
  matchesSecret,
  type PresentedCredentials,
  type StoredAccount,
} from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { settledWithin } from '@order-gateway/runtime/settled-within';
import { credentialLimits } from '../limits.ts';
import { storageFailure } from './store-failure.ts';

export interface AuthenticateDeps {
  readonly directory: AccountDirectory;
  /** Milliseconds since 1970-01-01 UTC, which are compared with the expiry of secrets. */
  readonly now: () => number;
  /** Milliseconds of a monotonic clock, for the ages of cached accounts and of pending lookups. */
  readonly monotonicNow: () => number;
}

/**
 * Checks the credentials of a request within `timeoutMs`. Missing, unknown and wrong credentials get the same failure.
 */
export type Authenticate = (credentials: PresentedCredentials, timeoutMs: number) => Promise<Result<Account, Failure>>;

const { cacheLifeMs, refreshAgeMs, cachedAccountsMax, uncachedLookupsMax, rejectedAfterMs, hashedSecretsMax } =
  credentialLimits;

/**
 * Creates the check. Only a success can come from the cache. Credentials that don't match the cache are looked up, so
 * that an unknown id and a wrong secret take the same time, and a new secret works immediately.
 */
export function createAuthenticate({ directory, now, monotonicNow }: AuthenticateDeps): Authenticate {
  // `readAtMs` is the start of the lookup by the monotonic clock. The result is at least as new as that.
  const cache = new Map<string, { readonly stored: StoredAccount; readonly readAtMs: number }>();
  const lookups = new Map<string, { readonly found: Promise<AccountLookup>; readonly readAtMs: number }>();
  const hashes = new Map<string, Uint8Array>();

  const lookUp = (clientId: string): Promise<AccountLookup> => {
    const readAtMs = monotonicNow();
    const pending = lookups.get(clientId);
    // A slow lookup may have read a secret that has been revoked since. Later calls therefore don't share a lookup that
    // is older than the maximum age of a cached account.
    if (pending !== undefined && readAtMs - pending.readAtMs < cacheLifeMs) return pending.found;
    if (!cache.has(clientId) && lookups.size >= uncachedLookupsMax) return Promise.resolve({ kind: 'overloaded' });
    const lookup = { found: directory.findAccount(clientId), readAtMs };
    lookups.set(clientId, lookup);
    return lookup.found
      .finally(() => {
        if (lookups.get(clientId) === lookup) lookups.delete(clientId);
      })
      .then((found) => {
        if (found.kind === 'found') store(clientId, found.stored, readAtMs);
        if (found.kind === 'unknown') cache.delete(clientId);
        return found;
      });
  };

  const store = (clientId: string, stored: StoredAccount, readAtMs: number) => {
    cache.delete(clientId);
    cache.set(clientId, { stored, readAtMs });
    if (cache.size > cachedAccountsMax) cache.delete(cache.keys().next().value as string);
  };

  return async (presentedCredentials, timeoutMs) => {
    if (!areWellFormed(presentedCredentials)) return failed({ kind: 'unauthenticated' });
    const { clientId, clientSecret } = presentedCredentials;
    // The cached hash of a valid secret is compared with the live hashes like any other. The map can't be searched by
    // part of a secret, so its timing reveals nothing.
    const cachedHash = hashes.get(clientSecret);
    const presented = cachedHash ?? hashSecret(clientSecret);
    const cached = cache.get(clientId);
    const ageMs = cached === undefined ? Number.POSITIVE_INFINITY : monotonicNow() - cached.readAtMs;
    if (cached !== undefined && ageMs < cacheLifeMs && hasLiveSecret(cached.stored, presented, now())) {
      if (ageMs >= refreshAgeMs) lookUp(clientId).catch(() => {});
      if (cachedHash === undefined) {
        if (hashes.size >= hashedSecretsMax) hashes.clear();
        hashes.set(clientSecret, presented);
      }
      return success(cached.stored.account);
    }
    const rejectionDelay = new Promise((resolve) =>
      setTimeout(resolve, Math.min(rejectedAfterMs, Math.max(0, timeoutMs))),
    );
    const found = await settledWithin(timeoutMs, lookUp(clientId));
    if (found === 'deadline_exceeded') return failed(storageFailure(found));
    if (found.kind === 'unavailable' || found.kind === 'overloaded') return failed(storageFailure(found.kind));
    const secrets = found.kind === 'found' ? found.stored : undefined;
    if (hasLiveSecret(secrets, presented, now()) && found.kind === 'found') return success(found.stored.account);
    await rejectionDelay;
    return failed({ kind: 'unauthenticated' });
  };
}

function hasLiveSecret(stored: StoredAccount | undefined, presented: Uint8Array, nowMs: number): boolean {
  const live: Uint8Array[] = [];
  for (const { hash, endsAtMs } of stored?.secrets ?? []) {
    if (endsAtMs === null || endsAtMs > nowMs) live.push(hash);
  }
  return matchesSecret(presented, live);
}
