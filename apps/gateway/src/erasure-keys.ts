import { hkdfSync } from 'node:crypto';
import type { SecretsKeys } from './signing-secrets.ts';

/** The keys by which erased orders are recognised, from those of SECRETS_KEY (RFC 5869): never the keys that encrypt. */
export function erasureKeysOf(secretsKeys: SecretsKeys): SecretsKeys {
  const derive = (key: Uint8Array) => new Uint8Array(hkdfSync('sha256', key, '', 'order erasure', 32));
  return [derive(secretsKeys[0]), ...secretsKeys.slice(1).map(derive)];
}
