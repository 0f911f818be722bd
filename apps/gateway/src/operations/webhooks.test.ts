import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import type { Managed, MerchantManagement } from '@order-gateway/domain/management';
import { formatTime } from '@order-gateway/domain/orders';
import { success } from '@order-gateway/domain/result';
import { redeliveredMax, type WebhookDelivery, type WebhookEndpoint } from '@order-gateway/domain/webhooks';
import { expect, test } from 'vitest';
import { caller } from '../../test/helpers/fixed-deps.ts';
import type { SigningSecrets } from '../runtime/secrets/signing-secrets.ts';
import type { Ping } from './service.ts';
import { webhookOperations } from './webhooks.ts';

const [secret, previousSecret] = [new Uint8Array([1]), new Uint8Array([2])];
const endpoint: WebhookEndpoint = {
  endpointId: `we_${'0'.repeat(32)}`,
  url: 'https://shop.example/hook',
  eventTypes: null,
  signingSecret: secret,
  previousSecret,
  createdAt: new Date(0),
  disabledAt: null,
  failingSince: null,
};

/** Calls a method on {@link endpoint}. Returns its result, and the names of the store's methods that it used. */
async function call(
  name: keyof typeof WebhookService.method,
  members: Readonly<Record<string, unknown>>,
  { ping = async () => success({ text: '' }), ...managed }: Partial<Managed> & { readonly ping?: Ping } = {},
) {
  const used: PropertyKey[] = [];
  const store = new Proxy({ list: async () => [endpoint], ...managed } as Managed, {
    get(target, method: keyof Managed) {
      used.push(method);
      return target[method];
    },
  });
  const management: MerchantManagement = {
    perform: async (_caller, work) => ({ kind: 'done', value: await work(store) }),
  };
  const signingSecrets = { decrypt: (_id, stored) => stored } as SigningSecrets;
  const operations = webhookOperations({ management, signingSecrets, webhookAddresses: 'public', ping });
  const operation = operations.find(({ method }) => method === WebhookService.method[name]);
  return { result: await operation?.handle({ id: endpoint.endpointId, ...members }, caller), used };
}

test('an update without settings changes nothing, so the audit log does not record it', async () => {
  const { result, used } = await call('updateWebhookEndpoint', { url: '', event_types: [] });
  expect(result).toMatchObject({ ok: true, value: { body: { endpoint: { url: endpoint.url } } } });
  expect(used).toEqual(['list']);
});

test.each([
  [redeliveredMax - 1, false],
  [redeliveredMax, true],
])('after %i deliveries were queued again, has_more is %s', async (queued, has_more) => {
  const redeliverFailed = async () => queued;
  const { result } = await call('redeliverFailedWebhooks', { failed_since: '2026-11-20T00:00Z' }, { redeliverFailed });
  expect(result).toMatchObject({ ok: true, value: { body: { queued, has_more } } });
});

test.each([
  [2, false],
  [3, true],
])('of %i deliveries, a page of 2 has a cursor for the others: %s', async (count, hasCursor) => {
  const deliveries = Array.from(
    { length: count },
    (_, index): WebhookDelivery => ({
      endpointId: endpoint.endpointId,
      eventId: `evt_${String(index).padStart(32, '0')}`,
      type: 'order.paid',
      attempts: 1,
      lastResult: 'HTTP 204',
      nextAttemptAt: null,
      createdAt: new Date(1_000),
      lastAttemptAt: new Date(2_000),
      deliveredAt: new Date(3_000),
    }),
  );
  const afters: unknown[] = [];
  const pageOfDeliveries: Managed['pageOfDeliveries'] = async (_merchantId, _endpointId, { after, limit }) => {
    afters.push(after);
    return deliveries.slice(0, limit);
  };
  const list = (cursor?: string) => call('listWebhookDeliveries', { limit: 2, cursor }, { pageOfDeliveries });
  const { body } = Object((await list()).result).value;
  const delivery = {
    type: 'order.paid',
    status: 'delivered',
    attempts: 1,
    last_result: 'HTTP 204',
    next_attempt_at: undefined,
    created_at: formatTime(1_000),
    last_attempt_at: formatTime(2_000),
    delivered_at: formatTime(3_000),
  };
  const [first, second] = deliveries.map(({ eventId }) => eventId);
  expect(body.deliveries).toEqual([first, second].map((event_id) => ({ event_id, ...delivery })));
  expect(typeof body.next_cursor).toBe(hasCursor ? 'string' : 'undefined');
  await list(body.next_cursor);
  expect(afters).toEqual([undefined, hasCursor ? second : undefined]);
});

test.each([
  [199, false],
  [200, true],
  [299, true],
  [300, false],
  [undefined, false],
])('a ping with the response %s, signed with both secrets, was delivered: %s', async (status, delivered) => {
  const signedWith: (readonly Uint8Array[])[] = [];
  const ping: Ping = async (_merchantId, _url, secrets) => {
    signedWith.push(secrets);
    return success({ ...(status && { status }), text: 'HTTP' });
  };
  const { result } = await call('pingWebhookEndpoint', {}, { ping });
  expect(result).toMatchObject({ ok: true, value: { body: { delivered, result: 'HTTP' } } });
  expect(signedWith).toEqual([[secret, previousSecret]]);
});
