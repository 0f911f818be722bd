import type { createEncryption } from '@order-gateway/runtime/encryption';
import type { Connection, Store } from '../store/store.ts';
import { type Account, ProviderError } from './provider.ts';

/** Encrypts the secrets of connections. */
export type ConnectionEncryption = ReturnType<typeof createEncryption<string>>;

/** Whether the key of a connection has not been erased after the merchant disconnected. */
export const hasKey = ({ secrets }: Pick<Connection, 'secrets'>) => secrets.length > 0;

/** Returns the function that reads an account with its secrets. It rejects if they are erased, or not decrypted. */
export function accountReader(store: Pick<Store, 'findConnection'>, encryption: ConnectionEncryption | undefined) {
  return async (connectionId: string): Promise<Account> => {
    const connection = await store.findConnection(connectionId);
    if (connection && !hasKey(connection)) throw new ProviderError('unanswered', 'key_erased');
    const secrets = connection && encryption?.decrypt(connectionId, connection.secrets);
    if (connection === undefined || secrets === undefined)
      throw new Error(`the secrets of ${connectionId} can't be decrypted: check SECRETS_KEY`);
    return { ...connection, secrets: JSON.parse(Buffer.from(secrets).toString()) };
  };
}
