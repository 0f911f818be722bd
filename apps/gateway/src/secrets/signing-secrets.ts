import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import { createSigningSecret, formatSigningSecret } from '@order-gateway/domain/webhooks';
import type { WebhookEndpoints } from '@order-gateway/postgres/webhooks';

/** The keys of SECRETS_KEY, 32 bytes each. The first key encrypts. Each key decrypts the secrets that it encrypted. */
export type SecretsKeys = readonly [Uint8Array, ...Uint8Array[]];

export type SigningSecrets = ReturnType<typeof createSigningSecrets>;

// The parts of a stored secret: version, nonce, ciphertext, authentication tag.
const version = 1;
const nonceBytes = 12;
const tagBytes = 16;

const algorithm = 'aes-256-gcm';

/**
 * Returns the functions that encrypt and decrypt the merchants' signing secrets for the database, with AES-256-GCM. An
 * encrypted secret is bound to its merchant.
 */
export function createSigningSecrets(keys: SecretsKeys) {
  return {
    encrypt(merchantId: AccountId, secret: Uint8Array): Uint8Array {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, keys[0], nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(`${merchantId}`));
      const encrypted = [cipher.update(secret), cipher.final()];
      return Buffer.concat([Buffer.of(version), nonce, ...encrypted, cipher.getAuthTag()]);
    },
    /** Returns the secret; `undefined` if it was changed, or encrypted with another key or for another merchant. */
    decrypt(merchantId: AccountId, stored: Uint8Array): Uint8Array | undefined {
      if (stored[0] !== version || stored.length < 1 + nonceBytes + tagBytes) return undefined;
      for (const key of keys) {
        const secret = decryptWith(key, merchantId, stored);
        if (secret !== undefined) return secret;
      }
      return undefined;
    },
  };
}

function decryptWith(key: Uint8Array, merchantId: AccountId, stored: Uint8Array): Uint8Array | undefined {
  const nonce = stored.subarray(1, 1 + nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(`${merchantId}`)).setAuthTag(stored.subarray(-tagBytes));
  const secret = decipher.update(stored.subarray(1 + nonceBytes, -tagBytes));
  try {
    decipher.final();
    return secret;
  } catch {
    return undefined;
  }
}

/** Creates a signing secret for a merchant. Returns it formatted for the merchant and encrypted for the database. */
export function newSigningSecret(secrets: SigningSecrets, merchantId: AccountId) {
  const secret = createSigningSecret(randomBytes);
  return { secret: formatSigningSecret(secret), stored: secrets.encrypt(merchantId, secret) };
}

/**
 * Encrypts the stored secrets of all endpoints again, with the first key. Skips endpoints whose current secret no key
 * decrypts, or whose secret is replaced concurrently. Removes a previous secret that no key decrypts. Returns the
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
  const reencrypted = stored.flatMap(({ merchantId: id, endpointId, signingSecret: was, previousSecret }) => {
    const merchantId = id as AccountId;
    const signingSecret = encryptAgain(merchantId, was);
    const previous = encryptAgain(merchantId, previousSecret) ?? null;
    return signingSecret ? [{ merchantId, endpointId, was, signingSecret, previousSecret: previous }] : [];
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
