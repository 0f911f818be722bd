import type { AccountId, Credentials } from '@order-gateway/domain/accounts';
import type { Managed } from '@order-gateway/domain/management';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type postgres from 'postgres';
import { openAccountAdmin } from '../src/accounts/account-admin.ts';
import { openOrderStore } from '../src/order-store.ts';
import { openWebhookEndpoints } from '../src/webhooks/webhook-endpoints.ts';
import { createOrder } from './contract-store.ts';
import { testPatience } from './patience.ts';
import { storeEvents } from './webhook-events.ts';

/** A merchant with its credentials, and the objects to which the changes apply. */
export interface ManagedTarget extends Credentials {
  readonly merchantId: AccountId;
  readonly endpointId: string;
  readonly eventId: string;
  readonly secretId: number;
}

type Reads = 'list' | 'pageOfDeliveries' | 'listSecrets' | 'findBrand';

const url = 'https://shop.example.com/changed';

/** Every change that a merchant can make, in an order in which each one changes something. */
export const managementChanges: Readonly<
  Record<Exclude<keyof Managed, Reads>, (managed: Managed, target: ManagedTarget) => Promise<unknown>>
> = {
  create: (managed, { merchantId }) => managed.create(merchantId, { url, signingSecret: Uint8Array.of(1) }),
  update: (managed, { merchantId, endpointId }) => managed.update(merchantId, endpointId, { url }),
  rotate: (managed, { merchantId, endpointId }) => managed.rotate(merchantId, endpointId, Uint8Array.of(2)),
  redeliverFailed: (managed, { merchantId, endpointId }) =>
    managed.redeliverFailed(merchantId, endpointId, new Date(0)),
  redeliver: (managed, { merchantId, endpointId, eventId }) => managed.redeliver(merchantId, endpointId, eventId),
  updateBrand: (managed, { clientId }) => managed.updateBrand(clientId, { texts: { color: '#000000' }, logo: null }),
  addSecret: (managed, { clientId }) => managed.addSecret(clientId, null),
  endSecret: (managed, { clientId, secretId }) => managed.endSecret(clientId, secretId, null, { keepsLast: true }),
  remove: (managed, { merchantId, endpointId }) => managed.remove(merchantId, endpointId),
};

/**
 * Creates a merchant with an endpoint, a failed delivery to it, and three secrets. The id of the last secret is
 * `secretId`.
 */
export async function createManagedTarget(
  url: string,
  sql: postgres.Sql,
  isDistributed: boolean,
): Promise<ManagedTarget> {
  const options = { url, patience: testPatience };
  const [accounts, endpoints] = [openAccountAdmin(options), openWebhookEndpoints(options)];
  const store = openOrderStore({ url, isDistributed, patience: testPatience });
  try {
    const credentials = await accounts.create('Managing Shop');
    const merchantId = (await endpoints.find(credentials.clientId))?.merchantId ?? (0 as AccountId);
    await createOrder(store, sampleOrder(merchantId));
    const endpoint = { url: 'https://shop.example.com', signingSecret: Uint8Array.of(1) };
    const endpointId = (await endpoints.create(merchantId, endpoint)) ?? '';
    const [eventId = ''] = await storeEvents(sql, [merchantId], 1);
    await sql`update webhook_deliveries set attempts = 1, last_attempt_at = now(), next_attempt_at = null
      where merchant_id = ${merchantId}`;
    await accounts.addSecret(credentials.clientId, null);
    const added = await accounts.addSecret(credentials.clientId, null);
    return { ...credentials, merchantId, endpointId, eventId, secretId: added.kind === 'added' ? added.id : 0 };
  } finally {
    await Promise.all([accounts.close(), endpoints.close(), store.close()]);
  }
}
