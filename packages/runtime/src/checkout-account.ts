import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The client id and the secret of the checkout's account. */
interface CheckoutAccount {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * The file beside the embedded database with the account that the first `start` creates. Only its owner can read it.
 */
const fileName = 'checkout-account.json';

/** Returns the checkout's account at the gateway with the embedded database; `undefined` if there is none yet. */
export async function readCheckoutAccount(dataDir: string): Promise<CheckoutAccount | undefined> {
  const { clientId, clientSecret } = await readFile(join(dataDir, fileName), 'utf8')
    .then((text): Partial<CheckoutAccount> => Object(JSON.parse(text)))
    .catch((): Partial<CheckoutAccount> => ({}));
  return clientId && clientSecret ? { clientId, clientSecret } : undefined;
}

/** Stores the checkout's account at the gateway with the embedded database. */
export async function writeCheckoutAccount(dataDir: string, account: CheckoutAccount): Promise<void> {
  await writeFile(join(dataDir, fileName), `${JSON.stringify(account, null, 2)}\n`, { mode: 0o600 });
}
