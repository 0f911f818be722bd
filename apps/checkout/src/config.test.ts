import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeCheckoutAccount } from '@order-gateway/runtime/checkout-account';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../tools/test-resources.ts';
import { findCredentials, readConfig } from './config.ts';

test('with the embedded database, the account is that of `start`, unless the variables name one', async () => {
  const dataDir = await temporaryFolder();
  const find = (variables: Readonly<Record<string, string>>) =>
    findCredentials(readConfig({ DATA_DIR: dataDir, ...variables }));
  await expect(find({})).rejects.toThrow('CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET are required');
  const account = { clientId: 'chk_1', clientSecret: 'sk_1' };
  await writeCheckoutAccount(dataDir, account);
  expect(await find({})).toEqual(account);
  const [file = ''] = await readdir(dataDir);
  expect((await stat(join(dataDir, file))).mode & 0o777).toBe(0o600);
  const named = { CHECKOUT_CLIENT_ID: 'chk_2', CHECKOUT_CLIENT_SECRET: 'sk_2' };
  expect(await find(named)).toEqual({ clientId: 'chk_2', clientSecret: 'sk_2' });
  await expect(find({ DATABASE_URL: 'postgres://localhost/checkout' })).rejects.toThrow('are required');
});

test('the public address has no path, because the pages are at fixed paths', () => {
  const read = (address: string) => readConfig({ CHECKOUT_BASE_URL: address }).baseUrl;
  expect(read('https://pay.example/')).toBe('https://pay.example');
  expect(() => read('https://shop.example/pay')).toThrow('CHECKOUT_BASE_URL must be');
});
