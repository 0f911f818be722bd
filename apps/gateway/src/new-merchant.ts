import { type Credentials, createClientId, createClientSecret, hashSecret } from '@gateway/domain/credentials';
import { openMerchantAccounts } from '@gateway/postgres/merchant-accounts';
import { createRandomBytes } from './random-bytes.ts';

/** Makes a merchant with its first credentials. The secret is in this answer and nowhere else. */
export async function createMerchant(databaseUrl: string, name: string): Promise<Credentials> {
  const randomBytes = createRandomBytes();
  const credentials = { clientId: createClientId(randomBytes), clientSecret: createClientSecret(randomBytes) };
  const accounts = openMerchantAccounts(databaseUrl);
  try {
    await accounts.create({ name, clientId: credentials.clientId, secretHash: hashSecret(credentials.clientSecret) });
    return credentials;
  } finally {
    await accounts.close();
  }
}
