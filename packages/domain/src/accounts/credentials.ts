import { hash, timingSafeEqual } from 'node:crypto';
import { type RandomBytes, randomBase62 } from '../base62.ts';
import type { MerchantMode } from './account.ts';

/** An account's credentials, sent as `x-client-id` and `x-client-secret` to every API. */
export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

const clientIdPrefixes = { live: 'app_', test: 'app_test_', checkout: 'chk_' } as const;
const clientIdFormat = /^(app_|app_test_|chk_)[0-9A-Za-z]{24}$/;
const clientSecretFormat = /^sk_[0-9A-Za-z]{43}$/;

/**
 * The maximum number of an account's secrets that are valid at the same time. With more than one, a secret can be
 * replaced without downtime.
 */
export const liveSecretsMax = 5;

/**
 * Returns a new client id: `app_` (live merchant), `app_test_` (test merchant) or `chk_` (checkout system), and 24
 * base62 characters.
 */
export function createClientId(randomBytes: RandomBytes, kind: keyof typeof clientIdPrefixes = 'live'): string {
  return `${clientIdPrefixes[kind]}${randomBase62(24, randomBytes)}`;
}

/** Returns a new client secret: `sk_` and 43 base62 characters, 256 bits. Shown once, stored only as a hash. */
export function createClientSecret(randomBytes: RandomBytes): string {
  return `sk_${randomBase62(43, randomBytes)}`;
}

/** Whether a text has the format of a client id. */
export function isClientId(text: string): boolean {
  return clientIdFormat.test(text);
}

/** Returns the mode of the merchant with a client id; `undefined` for any other text. */
export function merchantModeOf(clientId: string): MerchantMode | undefined {
  if (!isClientId(clientId) || clientId.startsWith(clientIdPrefixes.checkout)) return undefined;
  return clientId.startsWith(clientIdPrefixes.test) ? 'test' : 'live';
}

/** Credentials as a request presents them: both can be absent. */
export type PresentedCredentials = { readonly [Key in keyof Credentials]: Credentials[Key] | undefined };

/**
 * Whether credentials have the format that the gateway issues. Credentials in any other format can be rejected without
 * a lookup.
 */
export function areWellFormed(presented: PresentedCredentials): presented is Credentials {
  return isClientId(presented.clientId ?? '') && clientSecretFormat.test(presented.clientSecret ?? '');
}

/** The stored form of a secret: SHA-256, 32 bytes. A slow password hash adds nothing for 256 random bits. */
export function hashSecret(clientSecret: string): Uint8Array {
  return hash('sha256', clientSecret, 'buffer');
}

const emptySlot = new Uint8Array(32);

/**
 * Whether the hash of a secret is among the stored hashes. Always compares {@link liveSecretsMax} times, so that the
 * time reveals neither the number of secrets nor which one matches.
 */
export function matchesSecret(presentedHash: Uint8Array, storedHashes: readonly Uint8Array[]): boolean {
  let matches = false;
  for (let slot = 0; slot < liveSecretsMax; slot += 1) {
    const stored = storedHashes[slot];
    const equal = timingSafeEqual(presentedHash, stored ?? emptySlot);
    if (equal && stored !== undefined) matches = true;
  }
  return matches;
}
