import { hkdfSync, randomBytes } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import { createSigningSecret, formatSigningSecret } from '@order-gateway/domain/webhooks';
import type { WebhookEndpoints } from '@order-gateway/postgres/webhooks';
import { createEncryption, type SecretsKeys } from '@order-gateway/runtime/encryption';

export type SigningSecrets = ReturnType<typeof createSigningSecrets>;

/** Returns the functions that encrypt and decrypt the merchants' signing secrets for the database. */
export const createSigningSecrets = createEncryption<AccountId>;

/** Creates a signing secret for a merchant. Returns it formatted for the merchant and encrypted for the database. */
export function newSigningSecret(secrets: SigningSecrets, merchantId: AccountId) {
  const secret = createSigningSecret(randomBytes);
  return { secret: formatSigningSecret(secret), stored: secrets.encrypt(merchantId, secret) };
}

/**
 * Encrypts the stored secrets of all endpoints again, with the first key. Skips endpoints whose current secret no key
 * decrypts, or whose secrets change concurrently. Removes a previous secret that no key decrypts. Returns the
 * number of endpoints that were re-encrypted, and the total.
 */
export async function reencryptAll(
  endpoints: Pick<WebhookEndpoints, 'listSecrets' | 'reencrypt'>,
  secrets: SigningSecrets,
): Promise<{ readonly count: number; readonly total: number }> {
  const stored = await endpoints.listSecrets();
  const encryptAgain = (merchantId: AccountId, encrypted: Uint8Array | null) => {
    const secret = encrypted && secrets.decrypt(merchantId, encrypted);
    return secret && secrets.encrypt(merchantId, secret);
  };
  const reencrypted = stored.flatMap(({ merchantId: id, endpointId, ...was }) => {
    const merchantId = id as AccountId;
    const signingSecret = encryptAgain(merchantId, was.signingSecret);
    const previousSecret = encryptAgain(merchantId, was.previousSecret) ?? null;
    return signingSecret ? [{ merchantId, endpointId, was, signingSecret, previousSecret }] : [];
  });
  return { count: await endpoints.reencrypt(reencrypted), total: stored.length };
}

/**
 * Derives the keys that recognize erased orders from those of SECRETS_KEY (RFC 5869). They are never used for
 * encryption.
 */
export function erasureKeysOf(secretsKeys: SecretsKeys): SecretsKeys {
  const derive = (key: Uint8Array) => new Uint8Array(hkdfSync('sha256', key, '', 'order erasure', 32));
  return [derive(secretsKeys[0]), ...secretsKeys.slice(1).map(derive)];
}
