import type { createEncryption } from '@order-gateway/runtime/encryption';
import type { Store } from '../store/store.ts';
import type { Account } from './provider.ts';

/** Encrypts the secrets of connections. */
export type ConnectionEncryption = ReturnType<typeof createEncryption<string>>;

/** Returns the function that reads a connected account with its secrets. It rejects if no key decrypts them. */
export function accountReader(store: Pick<Store, 'findConnection'>, encryption: ConnectionEncryption | undefined) {
  return async (connectionId: string): Promise<Account> => {
    const connection = await store.findConnection(connectionId);
    const secrets = connection && encryption?.decrypt(connectionId, connection.secrets);
    if (connection === undefined || secrets === undefined)
      throw new Error(`the secrets of ${connectionId} can't be decrypted: check SECRETS_KEY`);
    return { ...connection, secrets: JSON.parse(Buffer.from(secrets).toString()) };
  };
}
