import { hash, timingSafeEqual } from 'node:crypto';
import { type RandomBytes, randomBase62 } from './base62.ts';

/** Who calls: sent as `x-client-id` and `x-client-secret` at every door. */
export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

const clientIdForm = /^app_[0-9A-Za-z]{24}$/;
const clientSecretForm = /^sk_[0-9A-Za-z]{43}$/;

/** So that one secret can be replaced without downtime, a client has up to this many that work at the same time. */
export const liveSecretsMax = 5;

/** A new client id: `app_` and 24 base62 characters. */
export function createClientId(randomBytes: RandomBytes): string {
  return `app_${randomBase62(24, randomBytes)}`;
}

/** A new client secret: `sk_` and 43 base62 characters, 256 bits. It is shown once and kept nowhere. */
export function createClientSecret(randomBytes: RandomBytes): string {
  return `sk_${randomBase62(43, randomBytes)}`;
}

/** Whether a text has the form of the client ids that the gateway hands out. */
export function isClientId(text: string): boolean {
  return clientIdForm.test(text);
}

/** Whether credentials have the form that the gateway hands out; those of another form belong to nobody. */
export function areWellFormed({ clientId, clientSecret }: Credentials): boolean {
  return isClientId(clientId) && clientSecretForm.test(clientSecret);
}

/**
 * What is kept of a secret: SHA-256. A slow password hash would add nothing, because the secret is 256 random bits and cannot
 * be guessed from its hash.
 */
export function hashSecret(clientSecret: string): Uint8Array {
  return hash('sha256', clientSecret, 'buffer');
}

const emptySlot = new Uint8Array(32);

/**
 * Whether a secret's hash is among the kept ones. Always compares {@link liveSecretsMax} times, so that the time tells neither
 * how many secrets there are nor which one fits.
 */
export function matchesSecret(presentedHash: Uint8Array, keptHashes: readonly Uint8Array[]): boolean {
  let matches = false;
  for (let slot = 0; slot < liveSecretsMax; slot += 1) {
    const kept = keptHashes[slot];
    const equal = timingSafeEqual(presentedHash, kept ?? emptySlot);
    if (equal && kept !== undefined) matches = true;
  }
  return matches;
}
