import { expect, test } from 'vitest';
import { useGateway } from '../helpers/running-gateway.ts';
import { type Caller, callJson } from '../helpers/send-order.ts';

const gateway = useGateway();

async function newMerchant(): Promise<Caller> {
  return { url: gateway.url, credentials: await gateway.accounts.create('Shop') };
}

const withSecret = ({ url, credentials }: Caller, clientSecret: string) => ({
  url,
  credentials: { ...credentials, clientSecret },
});

test('a secret is replaced without an operator: created once, used, and the old one revoked', async () => {
  const merchant = await newMerchant();
  const created = await callJson(merchant, 'POST', '/client_secrets');
  expect([created.status, created.body]).toEqual([
    201,
    {
      id: expect.stringMatching(/^\d+$/),
      created_at: expect.any(String),
      client_secret: expect.stringMatching(/^sk_[0-9A-Za-z]{43}$/),
    },
  ]);
  const renewed = withSecret(merchant, created.body.client_secret);
  const { body: listed } = await callJson(renewed, 'GET', '/client_secrets');
  expect(listed.secrets.map(({ id }: { id: string }) => id)).toEqual([expect.any(String), created.body.id]);
  expect(JSON.stringify(listed)).not.toContain('sk_');
  const [{ id: old }] = listed.secrets;
  const revoked = await callJson(renewed, 'POST', `/client_secrets/${old}/revoke`);
  expect([revoked.status, revoked.body]).toMatchObject([200, { id: old, ends_at: expect.any(String) }]);
  await expect.poll(async () => (await callJson(merchant, 'GET', '/client_secrets')).status).toBe(401);
  const again = await callJson(renewed, 'POST', `/client_secrets/${old}/revoke`);
  expect([again.status, again.body]).toEqual([200, revoked.body]);
  const entries = await gateway.accounts.log({ clientId: merchant.credentials.clientId, after: 0, limit: 10 });
  expect(entries.slice(1).map(({ actor, action }) => [actor, action])).toEqual(
    ['secret.add', 'secret.revoke'].map((action) => [merchant.credentials.clientId, action]),
  );
});

test('the last working secret is never revoked, for any number of concurrent calls', async () => {
  const merchant = await newMerchant();
  await callJson(merchant, 'POST', '/client_secrets');
  const { body: listed } = await callJson(merchant, 'GET', '/client_secrets');
  const revoke = ({ id }: { id: string }) => callJson(merchant, 'POST', `/client_secrets/${id}/revoke`);
  const answers = await Promise.all(listed.secrets.map(revoke));
  // A call that revoked its own secret makes the other one unauthenticated.
  expect(answers.map(({ status, body }) => body.code ?? status).toSorted()).toEqual([
    200,
    expect.stringMatching(/^(last_client_secret|unauthenticated)$/),
  ]);
  const stored = (await gateway.accounts.listSecrets(merchant.credentials.clientId)) ?? [];
  expect(stored.filter(({ endsAt }) => endsAt === null)).toHaveLength(1);
});

test('the 6th working secret is rejected, for any number of concurrent calls', async () => {
  const merchant = await newMerchant();
  const create = async () => {
    const { status, body } = await callJson(merchant, 'POST', '/client_secrets');
    return body.code ?? status;
  };
  const codes = await Promise.all(Array.from({ length: 20 }, create));
  // On a busy machine a call can end without a known outcome, and has then perhaps created a secret.
  const unknown = ['unavailable', 'deadline_exceeded', 'overloaded'];
  expect(codes.filter((code) => ![201, 'too_many_client_secrets', ...unknown].includes(code))).toEqual([]);
  await expect.poll(create).toBe('too_many_client_secrets');
  const stored = (await gateway.accounts.listSecrets(merchant.credentials.clientId)) ?? [];
  expect(stored.filter(({ endsAt }) => endsAt === null)).toHaveLength(5);
});

test('a revoked secret manages nothing, even while other calls may still use it', async () => {
  const merchant = await newMerchant();
  const { body: created } = await callJson(merchant, 'POST', '/client_secrets');
  const { body: endpoint } = await callJson(merchant, 'POST', '/webhook_endpoints', { url: 'https://203.0.113.7/' });
  const leaked = withSecret(merchant, created.client_secret);
  // The gateway knows the secret from now on.
  expect((await callJson(leaked, 'GET', '/orders')).status).toBe(200);
  expect((await callJson(merchant, 'POST', `/client_secrets/${created.id}/revoke`)).status).toBe(200);
  const log = () => gateway.accounts.log({ clientId: merchant.credentials.clientId, after: 0, limit: 100 });
  const before = await log();
  const calls = [
    ['POST', '/client_secrets'],
    ['POST', `/client_secrets/${created.id}/revoke`],
    ['POST', '/webhook_endpoints', { url: 'https://203.0.113.8/' }],
    ['PATCH', `/webhook_endpoints/${endpoint.id}`, { url: 'https://203.0.113.8/' }],
    ['POST', `/webhook_endpoints/${endpoint.id}/ping`],
    ['POST', `/webhook_endpoints/${endpoint.id}/rotate_secret`],
    ['DELETE', `/webhook_endpoints/${endpoint.id}`],
    ['PATCH', '/brand', { color: '#000000' }],
  ] as const;
  const answers = await Promise.all(calls.map(([method, path, body]) => callJson(leaked, method, path, body)));
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual(calls.map(() => [401, 'unauthenticated']));
  expect(await log()).toEqual(before);
});
