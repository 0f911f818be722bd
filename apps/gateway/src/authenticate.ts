import { areWellFormed, type Credentials, hashSecret, matchesSecret } from '@gateway/domain/credentials';
import type { Failure } from '@gateway/domain/failure';
import type { Client, ClientLookup, Merchant, MerchantDirectory } from '@gateway/domain/merchant';
import { failed, type Result, success } from '@gateway/domain/result';
import { settledWithin } from './deadline.ts';
import { storageFailure } from './storage-failure.ts';

export interface AuthenticateDeps {
  readonly directory: MerchantDirectory;
  /** Milliseconds since 1970-01-01 UTC: when secrets end. */
  readonly now: () => number;
  /** Milliseconds since any fixed moment, by a clock that nobody sets: how old what is kept in memory is. */
  readonly monotonicNow: () => number;
}

/** What a request brings in the two headers, or metadata, of a client's credentials. */
export type PresentedCredentials = { readonly [Key in keyof Credentials]: Credentials[Key] | undefined };

/** Checks the credentials of a request within the time given. Missing, unknown and wrong ones get one answer. */
export type Authenticate = (credentials: PresentedCredentials, timeoutMs: number) => Promise<Result<Merchant, Failure>>;

/**
 * A client is served from memory for this long after it was read. A revoked secret must stop within 1 s in every process, and
 * this bound holds without any message that could get lost; the rest of the second is for the look-up itself.
 */
const cacheLifeMs = 800;

/** A client in use is read anew in the background at this age, so that no request of a busy merchant waits for a look-up. */
const refreshAgeMs = 400;

/** Clients kept in memory, the longest unread are dropped first. About 1 KB each. Only clients that exist are kept. */
const cachedClientsMax = 10_000;

/**
 * Look-ups under way for ids that are not in memory, half a second's worth of a flood of unknown ids, among which is a merchant's
 * first call. A flood can't take more than this: over it the answer is `overloaded` at once. Look-ups share statements, so that
 * these take a handful of them.
 */
const strangerLookupsMax = 4_096;

/** Secrets kept in memory with their hashes: only ones that fitted. */
const hashedSecretsMax = 10_000;

interface CachedClient {
  readonly client: Client;
  readonly readAtMs: number;
}

/** A look-up under way. */
interface Lookup {
  readonly found: Promise<ClientLookup>;
  /** When it began, by the monotonic clock: what it finds is at least as new. */
  readonly readAtMs: number;
}

/**
 * Makes the check. A pass may come from memory; a refusal never does: whatever does not match is looked up first, so that an
 * unknown id and a wrong secret cost the same work, and a new secret works at once.
 */
export function createAuthenticate({ directory, now, monotonicNow }: AuthenticateDeps): Authenticate {
  const cache = new Map<string, CachedClient>();
  const hashes = new Map<string, Uint8Array>();
  const lookups = new Map<string, Lookup>();

  const lookUp = (clientId: string): Promise<ClientLookup> => {
    const readAtMs = monotonicNow();
    const underWay = lookups.get(clientId);
    // What a slow one read may have been revoked since: it is shared for no longer than a client is served from memory.
    if (underWay !== undefined && readAtMs - underWay.readAtMs < cacheLifeMs) return underWay.found;
    if (!cache.has(clientId) && lookups.size >= strangerLookupsMax) return Promise.resolve({ kind: 'overloaded' });
    const lookup: Lookup = { found: directory.findClient(clientId), readAtMs };
    lookups.set(clientId, lookup);
    return lookup.found
      .finally(() => forget(clientId, lookup))
      .then((found) => {
        if (found.kind === 'found') keep(clientId, { client: found.client, readAtMs });
        if (found.kind === 'unknown') cache.delete(clientId);
        return found;
      });
  };

  const forget = (clientId: string, lookup: Lookup) => {
    if (lookups.get(clientId) === lookup) lookups.delete(clientId);
  };

  const keep = (clientId: string, cached: CachedClient) => {
    cache.delete(clientId);
    cache.set(clientId, cached);
    for (const oldest of cache.keys()) {
      if (cache.size <= cachedClientsMax) return;
      cache.delete(oldest);
    }
  };

  const remember = (clientSecret: string, hash: Uint8Array) => {
    if (hashes.size >= hashedSecretsMax) hashes.clear();
    hashes.set(clientSecret, hash);
  };

  return async ({ clientId, clientSecret }, timeoutMs) => {
    if (clientId === undefined || clientSecret === undefined) return failed({ kind: 'unauthenticated' });
    if (!areWellFormed({ clientId, clientSecret })) return failed({ kind: 'unauthenticated' });
    // A secret that fitted before is not hashed anew. What is found is its hash, which is held against the live ones like any
    // other; and the table finds nothing by a part of a secret, so that its time tells nothing of one.
    const known = hashes.get(clientSecret);
    const presented = known ?? hashSecret(clientSecret);
    const cached = cache.get(clientId);
    const ageMs = cached === undefined ? Number.POSITIVE_INFINITY : monotonicNow() - cached.readAtMs;
    if (cached !== undefined && ageMs < cacheLifeMs && holds(cached.client, presented, now())) {
      if (ageMs >= refreshAgeMs) lookUp(clientId).catch(() => {});
      if (known === undefined) remember(clientSecret, presented);
      return success(cached.client.merchant);
    }
    const found = await settledWithin(timeoutMs, lookUp(clientId));
    if (found === 'deadline_exceeded') return failed(storageFailure(found));
    if (found.kind === 'unavailable' || found.kind === 'overloaded') return failed(storageFailure(found.kind));
    const secrets = found.kind === 'found' ? found.client : undefined;
    if (!holds(secrets, presented, now()) || found.kind === 'unknown') return failed({ kind: 'unauthenticated' });
    return success(found.client.merchant);
  };
}

function holds(client: Client | undefined, presented: Uint8Array, nowMs: number): boolean {
  const live: Uint8Array[] = [];
  for (const { hash, endsAtMs } of client?.secrets ?? []) {
    if (endsAtMs === null || endsAtMs > nowMs) live.push(hash);
  }
  return matchesSecret(presented, live);
}
