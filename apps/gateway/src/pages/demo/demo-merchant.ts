import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AccountId, type Credentials, consoleLimits } from '@order-gateway/domain/accounts';
import { type BaseUrl, signInLink } from '@order-gateway/domain/links';
import { formatSigningSecret } from '@order-gateway/domain/webhooks';
import { createMerchant, openAccountAdmin } from '@order-gateway/postgres/accounts';
import { openWebhookEndpoints, type WebhookEndpoints } from '@order-gateway/postgres/webhooks';
import type { SecretsKeys } from '@order-gateway/runtime/encryption';
import { messageOf, StartError } from '@order-gateway/runtime/process';
import { createSigningSecrets, newSigningSecret, type SigningSecrets } from '../../runtime/secrets/signing-secrets.ts';
import { demoReturnPath } from './demo-return-page.ts';

/** The file from which the next start reads the demo merchant's credentials. Only its owner can read it. */
const fileName = 'demo-merchant.json';

/** The demo merchant. */
export interface Demo extends Credentials {
  readonly accountId: AccountId;
}

export interface DemoMerchant extends Demo {
  /**
   * The secret that signs the merchant's webhooks and return URLs; absent if the merchant's endpoint or the encryption
   * key was removed.
   */
  readonly signingSecret: string | undefined;
}

interface DemoDatabase {
  readonly url: string;
  readonly dataDir: string;
  /** The keys that encrypt the signing secret. */
  readonly secretsKeys: SecretsKeys;
}

/**
 * Returns the demo merchant of the embedded database. The first start creates it, and later starts find it. Rejects
 * with a {@link StartError} if that fails.
 */
export async function findOrCreateDemoMerchant(database: DemoDatabase): Promise<DemoMerchant> {
  const path = join(database.dataDir, fileName);
  await using endpoints = openWebhookEndpoints(database);
  const secrets = createSigningSecrets(database.secretsKeys);
  try {
    const credentials =
      (await findCredentials(endpoints, path)) ?? (await createDemoMerchant(database, secrets, endpoints, path));
    const merchant = await endpoints.find(credentials.clientId);
    if (merchant === undefined) throw new Error('it was not stored');
    const { merchantId: accountId, endpoint } = merchant;
    const secret = endpoint && secrets.decrypt(accountId, endpoint.signingSecret);
    return { ...credentials, accountId, signingSecret: secret && formatSigningSecret(secret) };
  } catch (error) {
    throw new StartError(`The demo merchant in ${database.dataDir} could not be found or created: ${messageOf(error)}`);
  }
}

/**
 * Returns the credentials in the file; `undefined` if there are none, or if this database does not have the merchant.
 */
async function findCredentials(endpoints: WebhookEndpoints, path: string): Promise<Credentials | undefined> {
  const stored: Readonly<Record<string, unknown>> = await readFile(path, 'utf8')
    .then((text) => Object(JSON.parse(text)))
    .catch(() => ({}));
  const { clientId, clientSecret } = stored;
  if (typeof clientId !== 'string' || typeof clientSecret !== 'string') return undefined;
  return (await endpoints.find(clientId)) && { clientId, clientSecret };
}

async function createDemoMerchant(
  { url }: DemoDatabase,
  secrets: SigningSecrets,
  endpoints: WebhookEndpoints,
  path: string,
): Promise<Credentials> {
  const credentials = await createMerchant(url, 'Demo Shop', 'test');
  const merchant = await endpoints.find(credentials.clientId);
  if (merchant === undefined) throw new Error('it was not stored');
  const { stored } = newSigningSecret(secrets, merchant.merchantId);
  // A signing secret needs an endpoint. The demo merchant has no server yet, so its endpoint is disabled.
  const endpoint = { url: 'https://shop.example.com/webhooks', signingSecret: stored, disabledAt: new Date() };
  await endpoints.create(merchant.merchantId, endpoint);
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  try {
    // Unlike rename, link fails if the file exists. Two simultaneous first starts both use the file that was linked
    // first.
    await link(draft, path);
  } catch {
    const firstCredentials = await findCredentials(endpoints, path);
    if (firstCredentials !== undefined) return firstCredentials;
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
  return credentials;
}

/**
 * Creates the demo order, which can be paid. A later start finds the order, or creates another if the first can no
 * longer be paid. Returns `undefined` if that fails, because the gateway can run without the order. `url` is the
 * address at which this process can reach the HTTP port.
 */
export async function createDemoOrder(url: string, { clientId, clientSecret }: Credentials, baseUrl: BaseUrl) {
  try {
    for (const orderId of ['demo-1000', `demo-${Date.now()}`]) {
      const response = await fetch(`${url}/order`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-client-id': clientId, 'x-client-secret': clientSecret },
        body: demoOrder(orderId, baseUrl),
        signal: AbortSignal.timeout(10_000),
      });
      const { order_status, payment_link } = Object(await response.json());
      if (order_status === 'UN_PAID') return { orderId, paymentLink: String(payment_link) };
    }
  } catch {
    // Handled like an error response.
  }
  return undefined;
}

/** Creates a one-time link to the demo merchant's console. Returns `undefined` if that fails, as for the order. */
export async function createDemoConsoleLink(url: string, { clientId }: Credentials, baseUrl: BaseUrl) {
  try {
    await using accounts = openAccountAdmin({ url });
    const token = await accounts.createConsoleLink(clientId, { name: 'developer', role: 'manage' });
    return token === undefined ? undefined : signInLink(baseUrl, token);
  } catch {
    return undefined;
  }
}

/**
 * Returns the text that `start` prints for developers. The README continues after the last step of this text and uses
 * the same variables.
 */
export function demoBanner(
  { clientId, clientSecret, signingSecret }: DemoMerchant,
  baseUrl: BaseUrl,
  order: Awaited<ReturnType<typeof createDemoOrder>>,
  consoleLink: string | undefined,
  hasCheckout = false,
): string {
  const buttons = hasCheckout ? '"Open the checkout"\n     and "It succeeds"' : '"Simulate a payment"';
  const payStep = `Pay the order ${order?.orderId}: open its payment link and click ${buttons}.
     No money moves, and the page that stands in for a shop shows what a shop receives:

     ${order?.paymentLink}`;
  const variables = [
    `BASE_URL=${baseUrl}`,
    `CLIENT_ID=${clientId}`,
    `CLIENT_SECRET=${clientSecret}`,
    ...(signingSecret === undefined ? [] : [`SIGNING_SECRET=${signingSecret}`]),
  ];
  const variablesStep = `In another terminal, set the credentials of the demo merchant:

export ${variables.join(' \\\n  ')}`;
  const createStep = `Create an order. Send it again to see the replay, or with another amount to see the conflict:

${createOrderCommand}`;
  const consoleStep = `Sign in to the demo merchant's console. This link works once, within ${consoleLimits.linkMs / 60_000} minutes:

     ${consoleLink}`;
  const steps = [
    ...(order === undefined ? [] : [payStep]),
    ...(consoleLink === undefined ? [] : [consoleStep]),
    variablesStep,
    createStep,
  ];
  return `
The gateway is running at ${baseUrl}. Press Ctrl-C to stop it.
The API reference is at ${baseUrl}/docs.

${steps.map((step, index) => `  ${index + 1}. ${step}`).join('\n\n')}

README.md continues here: look up the order, cancel it, and read the events.

`;
}

/** The command that creates an order with the variables of {@link demoBanner}. The README shows it too. */
const createOrderCommand = `curl -i "$BASE_URL/order" \\
  -H 'content-type: application/json' \\
  -H "x-client-id: $CLIENT_ID" \\
  -H "x-client-secret: $CLIENT_SECRET" \\
  -d @- <<END
${demoOrder('demo-1001', '$BASE_URL')}
END`;

/**
 * Returns an order as JSON text, so that the amount keeps its two decimals. Its return URL is a page of the gateway,
 * because the demo merchant has no website.
 */
function demoOrder(orderId: string, baseUrl: string): string {
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
  "return_url": "${baseUrl}${demoReturnPath}"
}`;
}
