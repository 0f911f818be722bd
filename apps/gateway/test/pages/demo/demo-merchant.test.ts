import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../../../tools/test-resources.ts';
import {
  createDemoConsoleLink,
  createDemoOrder,
  demoBanner,
  findOrCreateDemoMerchant,
} from '../../../src/pages/demo/demo-merchant.ts';
import { createSigningSecrets, newSigningSecret } from '../../../src/runtime/secrets/signing-secrets.ts';
import { testSecretsKey, useGateway } from '../../helpers/running-gateway.ts';
import { pressPay } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true });
let dataDir: string;
beforeEach(async () => {
  dataDir = await temporaryFolder();
});

const findOrCreate = () =>
  findOrCreateDemoMerchant({ url: gateway.databaseUrl, dataDir, secretsKeys: [testSecretsKey] });

test('concurrent first starts agree on one demo merchant, and later starts find it', async () => {
  const [first, second] = await Promise.all([findOrCreate(), findOrCreate()]);
  expect(second).toEqual(first);
  expect(await findOrCreate()).toEqual(first);
  expect(await readdir(dataDir)).toEqual(['demo-merchant.json']);
});

test.each([
  ['invalid JSON', 'x'],
  ['the merchant of a different database', '{"clientId":"app_test_000000000000000000000000","clientSecret":"sk_x"}'],
])('a file with %s is replaced', async (_, content) => {
  await writeFile(join(dataDir, 'demo-merchant.json'), content);
  const created = await findOrCreate();
  expect(await findOrCreate()).toEqual(created);
  expect(await createDemoOrder(gateway.url, created, gateway.baseUrl)).toMatchObject({ orderId: 'demo-1000' });
});

test('a later start shows the current signing secret', async () => {
  const { clientId, signingSecret } = await findOrCreate();
  const endpoints = openWebhookEndpoints({ url: gateway.databaseUrl });
  onTestFinished(() => endpoints.close());
  const { merchantId } = (await endpoints.find(clientId)) ?? {};
  if (merchantId === undefined) throw new Error('no demo merchant');
  const secrets = createSigningSecrets([testSecretsKey]);
  const [{ endpointId = '' } = {}] = await endpoints.list(merchantId);
  await endpoints.update(merchantId, endpointId, { url: 'http://localhost:3000', status: 'enabled' });
  expect((await findOrCreate()).signingSecret).toBe(signingSecret);
  const rotated = newSigningSecret(secrets, merchantId);
  await endpoints.rotate(merchantId, endpointId, rotated.stored);
  expect((await findOrCreate()).signingSecret).toBe(rotated.secret);
  await endpoints.remove(merchantId, endpointId);
  const withoutEndpoint = await findOrCreate();
  expect(withoutEndpoint).toMatchObject({ clientId, signingSecret: undefined });
  expect(demoBanner(withoutEndpoint, gateway.baseUrl, undefined, undefined)).not.toContain('undefined');
});

test('if a folder is in place of the file, the error names the data folder', async () => {
  await mkdir(join(dataDir, 'demo-merchant.json'));
  await expect(findOrCreate()).rejects.toThrow(`The demo merchant in ${dataDir} could not be found or created: `);
});

test('every start shows the same order until it is paid', async () => {
  const credentials = await findOrCreate();
  const nextStart = () => createDemoOrder(gateway.url, credentials, gateway.baseUrl);
  const first = await nextStart();
  expect(first).toEqual({ orderId: 'demo-1000', paymentLink: expect.stringContaining(`${gateway.baseUrl}/payment/`) });
  expect(await nextStart()).toEqual(first);
  await pressPay(first?.paymentLink ?? '');
  const next = await nextStart();
  expect(next?.orderId).toMatch(/^demo-\d{13}$/);
  expect(demoBanner(credentials, gateway.baseUrl, next, undefined)).toContain(`Pay the order ${next?.orderId}: `);
});

test('if the demo order cannot be created, nothing is thrown, and the banner does not contain "undefined"', async () => {
  const credentials = await findOrCreate();
  const wrong = { ...credentials, clientSecret: 'sk_x' };
  expect(await createDemoOrder('http://127.0.0.1:1', credentials, gateway.baseUrl)).toBeUndefined();
  expect(await createDemoOrder(gateway.url, wrong, gateway.baseUrl)).toBeUndefined();
  expect(demoBanner(credentials, gateway.baseUrl, undefined, undefined)).not.toContain('undefined');
});

test('the start shows a link that signs in to the console of the demo merchant', async () => {
  const merchant = await findOrCreate();
  const link = await createDemoConsoleLink(gateway.databaseUrl, merchant, gateway.baseUrl);
  const banner = demoBanner(merchant, gateway.baseUrl, undefined, link);
  const [, shown = ''] = /Sign in to the demo merchant's console\..+?\n +(http\S+)\n/s.exec(banner) ?? [];
  const signIn = () =>
    fetch(shown, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      redirect: 'manual',
    });
  expect((await signIn()).status).toBe(303);
  expect((await signIn()).status).toBe(410);
  expect(await createDemoConsoleLink('postgres://127.0.0.1:1/none', merchant, gateway.baseUrl)).toBeUndefined();
});
