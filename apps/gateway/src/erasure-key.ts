import { hkdfSync } from 'node:crypto';

/** The key by which erased orders are recognised, from SECRETS_KEY (RFC 5869): never the key that encrypts. */
export function erasureKeyOf(secretsKey: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secretsKey, '', 'order erasure', 32));
}
