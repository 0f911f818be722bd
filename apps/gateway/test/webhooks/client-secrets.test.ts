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
  expect(answers.map(({ status, body }) => body.code ?? status).toSorted()).toEqual([200, 'last_client_secret']);
});

test('the 6th working secret is rejected, for any number of concurrent calls', async () => {
  const merchant = await newMerchant();
  const answers = await Promise.all(Array.from({ length: 20 }, () => callJson(merchant, 'POST', '/client_secrets')));
  const codes = answers.map(({ status, body }) => body.code ?? status);
  expect(codes.filter((code) => code === 201)).toHaveLength(4);
  expect(codes.filter((code) => code === 'too_many_client_secrets')).toHaveLength(16);
});
