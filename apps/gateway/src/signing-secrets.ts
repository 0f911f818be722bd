import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { MerchantId } from '@gateway/domain/merchant';

/** Encrypts the merchants' signing secrets for the database: AES-256-GCM, bound to the merchant. */
export interface SigningSecrets {
  encrypt(merchantId: MerchantId, secret: Uint8Array): Uint8Array;
  /** Returns the secret; `undefined` if it was encrypted with another key or for another merchant. */
  decrypt(merchantId: MerchantId, stored: Uint8Array): Uint8Array | undefined;
}

// A stored secret: version, nonce, ciphertext, authentication tag.
const version = 1;
const nonceBytes = 12;
const tagBytes = 16;

const algorithm = 'aes-256-gcm';

/** `key` is that of SECRETS_KEY, 32 bytes. */
export function createSigningSecrets(key: Uint8Array): SigningSecrets {
  return {
    encrypt(merchantId, secret) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(`${merchantId}`));
      const encrypted = [cipher.update(secret), cipher.final()];
      return Buffer.concat([Buffer.of(version), nonce, ...encrypted, cipher.getAuthTag()]);
    },
    decrypt(merchantId, stored) {
      if (stored[0] !== version || stored.length < 1 + nonceBytes + tagBytes) return undefined;
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
    },
  };
}
