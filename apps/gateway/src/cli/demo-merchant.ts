import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Credentials } from '@gateway/domain/credentials';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { openWebhookEndpoints, type WebhookEndpoints } from '@gateway/postgres/webhook-endpoints';
import { messageOf, StartError } from '../process.ts';
import { createSigningSecrets, newSigningSecret, type SecretsKeys } from '../signing-secrets.ts';

/** The demo merchant for the next start, readable only by the owner. */
const fileName = 'demo-merchant.json';

/** The demo merchant's credentials, and the secret that signs its returns, as the merchant gets it. */
export interface DemoMerchant extends Credentials {
  readonly signingSecret: string;
}

interface DemoDatabase {
  readonly url: string;
  readonly dataDir: string;
  /** They encrypt the signing secret. */
  readonly secretsKeys: SecretsKeys;
}

/**
 * Returns the embedded database's one demo merchant: the first start creates it, later starts find it. Rejects with a
 * {@link StartError}.
 */
export async function findOrCreateDemoMerchant(database: DemoDatabase): Promise<DemoMerchant> {
  const path = join(database.dataDir, fileName);
  const endpoints = openWebhookEndpoints(database);
  try {
    return (await findDemoMerchant(endpoints, path)) ?? (await createDemoMerchant(database, endpoints, path));
  } catch (error) {
    throw new StartError(`The demo merchant in ${database.dataDir} could not be found or created: ${messageOf(error)}`);
  } finally {
    await endpoints.close();
  }
}

/** The merchant in the file; `undefined` if it is not in this database, or of a version before signing secrets. */
async function findDemoMerchant(endpoints: WebhookEndpoints, path: string): Promise<DemoMerchant | undefined> {
  const stored: Readonly<Record<string, unknown>> = await readFile(path, 'utf8')
    .then((text) => Object(JSON.parse(text)))
    .catch(() => ({}));
  const { clientId, clientSecret, signingSecret } = stored;
  if (typeof clientId !== 'string' || typeof clientSecret !== 'string' || typeof signingSecret !== 'string')
    return undefined;
  const merchant = await endpoints.find(clientId);
  return merchant && { clientId, clientSecret, signingSecret };
}

async function createDemoMerchant(
  { url, secretsKeys }: DemoDatabase,
  endpoints: WebhookEndpoints,
  path: string,
): Promise<DemoMerchant> {
  const credentials = await createMerchant(url, 'Demo Shop', 'test');
  const merchant = await endpoints.find(credentials.clientId);
  if (merchant === undefined) throw new Error('it was not stored');
  const { secret, stored } = newSigningSecret(createSigningSecrets(secretsKeys), merchant.merchantId);
  // A signing secret comes with an endpoint. The demo merchant has no server, so its endpoint is disabled.
  const endpoint = { url: 'https://shop.example.com/webhooks', signingSecret: stored, disabledAt: new Date() };
  await endpoints.set(merchant.merchantId, endpoint);
  const demoMerchant = { ...credentials, signingSecret: secret };
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(demoMerchant, null, 2)}\n`, { mode: 0o600 });
  try {
    // Unlike rename, link fails if the file exists: of two first starts, the first decides.
    await link(draft, path);
  } catch {
    const others = await findDemoMerchant(endpoints, path);
    if (others !== undefined) return others;
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
  return demoMerchant;
}

/**
 * Creates the demo order and returns its payment link; a later start finds it, or creates another if it can't be paid any more.
 * Returns `undefined` if that fails, because the gateway runs without it. `url` is where this process can reach the HTTP port.
 * Whoever pays returns to the base URL, as a shop's would not exist.
 */
export async function createDemoOrder(
  url: string,
  { clientId, clientSecret }: Credentials,
  baseUrl: BaseUrl,
): Promise<string | undefined> {
  try {
    for (const orderId of ['demo-1000', `demo-${Date.now()}`]) {
      const response = await fetch(`${url}/order`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-client-id': clientId, 'x-client-secret': clientSecret },
        body: demoOrder(orderId, `${baseUrl}/`),
        signal: AbortSignal.timeout(10_000),
      });
      const { order_status, payment_link } = Object(await response.json());
      if (order_status === 'UN_PAID') return payment_link;
    }
  } catch {
    // As for an error response.
  }
  return undefined;
}

/** What a developer sees after `start`: where to look, the credentials, and a request to paste. */
export function demoBanner(
  { clientId, clientSecret, signingSecret }: DemoMerchant,
  baseUrl: BaseUrl,
  paymentLink: string | undefined,
): string {
  return `
The gateway is running at ${baseUrl}. Press Ctrl-C to stop it.

  Documentation:   ${baseUrl}/docs
  Payment page:    ${paymentLink ?? 'create an order to get a payment link'}
                   Open it and press Pay: no money moves, the order is paid, and you return with a signature.

Demo merchant:

  x-client-id:     ${clientId}
  x-client-secret: ${clientSecret}
  signing secret:  ${signingSecret}

See the event of the payment:

  curl ${baseUrl}/events -H 'x-client-id: ${clientId}' -H 'x-client-secret: ${clientSecret}'

Create an order (send it again to see the replay, with another amount to see the conflict):

curl -i ${baseUrl}/order \\
  -H 'content-type: application/json' \\
  -H 'x-client-id: ${clientId}' \\
  -H 'x-client-secret: ${clientSecret}' \\
  -d '${demoOrder('demo-1001', 'https://shop.example.com/thanks').replaceAll('\n', '\n  ')}'

`;
}

/** As text, because the interface writes the amount with two decimals. */
function demoOrder(orderId: string, returnUrl: string): string {
  return `{
  "order_id": "${orderId}",
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
  "return_url": "${returnUrl}"
}`;
}
