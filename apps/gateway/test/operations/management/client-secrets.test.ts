import { expect, test } from 'vitest';
import { useGateway } from '../../helpers/running-gateway.ts';
import { type Caller, callJson } from '../../helpers/send-order.ts';

const gateway = useGateway();

/** Returns a merchant's audit log. */
const logOf = ({ credentials: { clientId } }: Caller) => gateway.accounts.log({ clientId, after: 0, limit: 100 });

/** Returns the number of a merchant's secrets that do not expire. */
async function countSecrets({ credentials }: Caller): Promise<number | undefined> {
  const secrets = await gateway.accounts.listSecrets(credentials.clientId);
  return secrets?.filter(({ endsAt }) => endsAt === null).length;
}

const withSecret = ({ url, credentials }: Caller, clientSecret: string) => ({
  url,
  credentials: { ...credentials, clientSecret },
});

test('a merchant uses a new secret to revoke its first one, and both changes are in the audit log under its client id', async () => {
  const merchant = await gateway.newMerchant();
  const { body: created } = await callJson(merchant, 'POST', '/client_secrets');
  expect(created.client_secret).toMatch(/^sk_[0-9A-Za-z]{43}$/);
  const renewed = withSecret(merchant, created.client_secret);
  const { body: listed } = await callJson(renewed, 'GET', '/client_secrets');
  expect(listed.secrets).toMatchObject([{}, { id: created.id }]);
  expect((await callJson(renewed, 'POST', `/client_secrets/${listed.secrets[0].id}/revoke`)).status).toBe(200);
  await expect.poll(async () => (await callJson(merchant, 'GET', '/client_secrets')).status).toBe(401);
  const actor = merchant.credentials.clientId;
  expect((await logOf(merchant)).slice(1)).toMatchObject([
    { actor, action: 'secret.add' },
    { actor, action: 'secret.revoke' },
  ]);
});

test('concurrent calls never revoke the last working secret', async () => {
  const merchant = await gateway.newMerchant();
  await callJson(merchant, 'POST', '/client_secrets');
  const { body: listed } = await callJson(merchant, 'GET', '/client_secrets');
  const revoke = ({ id }: { id: string }) => callJson(merchant, 'POST', `/client_secrets/${id}/revoke`);
  const responses = await Promise.all(listed.secrets.map(revoke));
  // If the first call revokes the secret that both use, the other call is unauthenticated.
  expect(responses.map(({ status, body }) => body.code ?? status).toSorted()).toEqual([
    200,
    expect.stringMatching(/^(last_client_secret|unauthenticated)$/),
  ]);
  expect(await countSecrets(merchant)).toBe(1);
});

test('concurrent calls never create a 6th working secret', async () => {
  const merchant = await gateway.newMerchant();
  const create = async () => {
    const { status, body } = await callJson(merchant, 'POST', '/client_secrets');
    return body.code ?? status;
  };
  const codes = await Promise.all(Array.from({ length: 20 }, create));
  // On a busy machine, a call can fail, although it may have created a secret.
  const failures = ['unavailable', 'deadline_exceeded', 'overloaded'];
  expect(codes.filter((code) => ![201, 'too_many_client_secrets', ...failures].includes(code))).toEqual([]);
  await expect.poll(create).toBe('too_many_client_secrets');
  expect(await countSecrets(merchant)).toBe(5);
});

test('a revoked secret can manage nothing, even while other calls may still use it', async () => {
  const merchant = await gateway.newMerchant();
  const { body: created } = await callJson(merchant, 'POST', '/client_secrets');
  const { body: endpoint } = await callJson(merchant, 'POST', '/webhook_endpoints', { url: 'https://203.0.113.7/' });
  const leaked = withSecret(merchant, created.client_secret);
  // With this call, the gateway caches the secret.
  expect((await callJson(leaked, 'GET', '/orders')).status).toBe(200);
  expect((await callJson(merchant, 'POST', `/client_secrets/${created.id}/revoke`)).status).toBe(200);
  const before = await logOf(merchant);
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
  const responses = await Promise.all(calls.map(([method, path, body]) => callJson(leaked, method, path, body)));
  expect(responses.map(({ status, body }) => [status, body.code])).toEqual(calls.map(() => [401, 'unauthenticated']));
  expect(await logOf(merchant)).toEqual(before);
});
