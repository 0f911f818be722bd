import { createHmac } from 'node:crypto';
import type { RandomBytes } from '../base62.ts';

/** The length of a signing secret in bytes. */
const secretBytes = 32;

/** Returns a new signing secret: 32 random bytes. It signs a merchant's webhooks and return URLs. */
export function createSigningSecret(randomBytes: RandomBytes): Uint8Array {
  // Copies the bytes, because the source may reuse its buffer.
  return Uint8Array.from(randomBytes(secretBytes));
}

/**
 * Formats a signing secret as the merchant receives it: `whsec_` and the base64 of its 32 bytes (Standard Webhooks,
 * "Signature scheme").
 */
export function formatSigningSecret(secret: Uint8Array): string {
  return `whsec_${Buffer.from(secret).toString('base64')}`;
}

/** The signed parts of a webhook request. */
export interface WebhookMessage {
  /** The header `webhook-id`: the same for every attempt. */
  readonly id: string;
  /** The header `webhook-timestamp`: when this attempt is made, in seconds since 1970-01-01 UTC. */
  readonly timestampSeconds: number;
  readonly body: string;
}

/**
 * Returns the header `webhook-signature` (Standard Webhooks, "Signature scheme"): for each secret `v1,` and the base64
 * of HMAC-SHA256 over `id.timestamp.body`, separated by spaces. Two secrets are in use after a rotation.
 */
export function webhookSignature(
  { id, timestampSeconds, body }: WebhookMessage,
  secrets: readonly Uint8Array[],
): string {
  const signedText = `${id}.${timestampSeconds}.${body}`;
  return secrets
    .map((secret) => `v1,${createHmac('sha256', secret).update(signedText, 'utf8').digest('base64')}`)
    .join(' ');
}
