import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Credentials } from '@gateway/domain/credentials';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { createMerchant, openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { messageOf, StartError } from '../process.ts';

/** Where the demo merchant's credentials are kept for the next start, readable by the owner alone. */
const fileName = 'demo-merchant.json';

/** The embedded database's one demo merchant: made at the first start, found again at the next. Rejects with {@link StartError}. */
export async function keepDemoMerchant(databaseUrl: string, dataDir: string): Promise<Credentials> {
  try {
    return await findOrMake(databaseUrl, dataDir);
  } catch (error) {
    throw new StartError(`The demo merchant could not be made or found in ${dataDir}: ${messageOf(error)}`);
  }
}

async function findOrMake(databaseUrl: string, dataDir: string): Promise<Credentials> {
  const path = join(dataDir, fileName);
  const kept = await readCredentials(path);
  if (kept !== undefined && (await exists(databaseUrl, kept.clientId))) return kept;
  const credentials = await createMerchant(databaseUrl, 'Demo Shop');
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  // Of two first starts at once, the first to get here decides; the other's merchant stays without a use.
  const isFirst = await link(draft, path).then(
    () => true,
    () => false,
  );
  const theirs = isFirst || kept !== undefined ? undefined : await readCredentials(path);
  if (isFirst || theirs !== undefined) {
    await rm(draft);
    return theirs ?? credentials;
  }
  // What is there holds no credentials, or those of a merchant that this database does not have.
  await rename(draft, path);
  return credentials;
}

async function readCredentials(path: string): Promise<Credentials | undefined> {
  try {
    const { clientId, clientSecret } = JSON.parse(await readFile(path, 'utf8'));
    return typeof clientId === 'string' && typeof clientSecret === 'string' ? { clientId, clientSecret } : undefined;
  } catch {
    return undefined;
  }
}

async function exists(databaseUrl: string, clientId: string): Promise<boolean> {
  const accounts = openMerchantAccounts({ url: databaseUrl });
  try {
    return (await accounts.listSecrets(clientId)) !== undefined;
  } finally {
    await accounts.close();
  }
}

/** What a developer sees after `start`: the credentials, and a request that can be pasted. */
export function demoBanner({ clientId, clientSecret }: Credentials, baseUrl: BaseUrl): string {
  return `
The gateway serves ${baseUrl}. Demo merchant:

  x-client-id:     ${clientId}
  x-client-secret: ${clientSecret}

Create an order (send it again to see the replay, with another amount to see the conflict):

curl -i ${baseUrl}/order \\
  -H 'content-type: application/json' \\
  -H 'x-client-id: ${clientId}' \\
  -H 'x-client-secret: ${clientSecret}' \\
  -d '{
    "order_id": "demo-1001",
    "order_amount": 10.00,
    "order_currency": "USD",
    "order_note": "Two tickets",
    "service_type": "DIGITAL",
    "customer_name": "Ada Lovelace",
    "customer_email": "ada@example.com",
    "customer_phone": "+44 20 7946 0018",
    "customer_address_line1": "12 St James Square",
    "customer_address_city": "London",
    "customer_address_state": "London",
    "customer_address_country": "United Kingdom",
    "customer_address_postal_code": "SW1Y 4JH",
    "order_checksum": "none",
    "return_url": "https://shop.example.com/thanks"
  }'

`;
}
