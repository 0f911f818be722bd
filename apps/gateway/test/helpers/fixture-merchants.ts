import { type Credentials, liveSecretsMax } from '@order-gateway/domain/accounts';
import { endpointsMax } from '@order-gateway/domain/webhooks';
import type { Merchants } from '@order-gateway/fixtures/replay';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import type { RunningGateway } from './running-gateway.ts';

/** Creates the merchants and checkout systems that the fixtures name. */
export async function createFixtureMerchants(gateway: RunningGateway): Promise<Merchants> {
  const { accounts, credentials } = gateway;
  const [strict, expiring] = [await accounts.create('Strict Shop'), await accounts.create('Expiring Shop')];
  await accounts.setChecksumMode(strict.clientId, 'required');
  await accounts.setDefaultLifetime(expiring.clientId, 60);
  const full = await accounts.create('Full Shop');
  await fill(gateway, full);
  return {
    first: credentials,
    second: await accounts.create('Second Shop'),
    strict,
    test: await accounts.create('Test Shop', 'test'),
    expiring,
    managed: await accounts.create('Managed Shop'),
    notified: await accounts.create('Notified Shop'),
    full,
    checkout: await accounts.create('Checkout', 'checkout', { makesRefunds: true }),
    second_checkout: await accounts.create('Second Checkout', 'checkout', { getsCustomerData: true }),
  };
}

/** Gives a merchant the maximum number of endpoints and secrets. */
async function fill({ accounts, databaseUrl }: RunningGateway, { clientId }: Credentials): Promise<void> {
  const endpoint = { url: 'https://shop.invalid', signingSecret: new Uint8Array(61), disabledAt: new Date() };
  const endpoints = openWebhookEndpoints({ url: databaseUrl, patience: testPatience });
  const merchant = await endpoints.find(clientId);
  for (let count = 0; merchant !== undefined && count < endpointsMax; count += 1)
    await endpoints.create(merchant.merchantId, endpoint);
  await endpoints.close();
  for (let count = 1; count < liveSecretsMax; count += 1) await accounts.addSecret(clientId, null);
}
