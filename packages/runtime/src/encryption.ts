import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** The keys of SECRETS_KEY, 32 bytes each. The first key encrypts. Each key decrypts the secrets that it encrypted. */
export type SecretsKeys = readonly [Uint8Array, ...Uint8Array[]];

// The parts of a stored secret: version, nonce, ciphertext, authentication tag.
const version = 1;
const nonceBytes = 12;
const tagBytes = 16;

const algorithm = 'aes-256-gcm';

/**
 * Returns the functions that encrypt and decrypt secrets for a database, with AES-256-GCM. An encrypted secret is bound
 * to its owner: no other owner's identifier decrypts it.
 */
export function createEncryption<Owner extends string | number>(keys: SecretsKeys) {
  return {
    encrypt(owner: Owner, secret: Uint8Array): Uint8Array {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, keys[0], nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(`${owner}`));
      const encrypted = [cipher.update(secret), cipher.final()];
      return Buffer.concat([Buffer.of(version), nonce, ...encrypted, cipher.getAuthTag()]);
    },
    /** Returns the secret; `undefined` if it was changed, or encrypted with another key or for another owner. */
    decrypt(owner: Owner, stored: Uint8Array): Uint8Array | undefined {
      if (stored[0] !== version || stored.length < 1 + nonceBytes + tagBytes) return undefined;
      const secrets = keys.values().map((key) => decryptWith(key, owner, stored));
      return secrets.find((secret) => secret !== undefined);
    },
  };
}

function decryptWith(key: Uint8Array, owner: string | number, stored: Uint8Array): Uint8Array | undefined {
  const nonce = stored.subarray(1, 1 + nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(`${owner}`)).setAuthTag(stored.subarray(-tagBytes));
  const secret = decipher.update(stored.subarray(1 + nonceBytes, -tagBytes));
  try {
    decipher.final();
    return secret;
  } catch {
    return undefined;
  }
}
