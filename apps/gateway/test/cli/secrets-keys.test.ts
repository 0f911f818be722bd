import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../tools/test-resources.ts';

const embedded = { secretsKeys: undefined, databaseUrl: undefined };

test('the first call creates a key file that only its owner can read, and later calls use the file', async () => {
  const dataDir = await temporaryFolder();
  const key = await findSecretsKeys({ ...embedded, dataDir });
  const path = join(dataDir, 'secrets-key');
  expect([(await stat(path)).mode & 0o777, await readFile(path, 'utf8')]).toEqual([
    0o600,
    `${Buffer.from(key?.[0] ?? []).toString('base64')}\n`,
  ]);
  expect(await findSecretsKeys({ ...embedded, dataDir })).toEqual(key);
});

test('processes that start at the same time use the same key, and leave no temporary file', async () => {
  const dataDir = await temporaryFolder();
  const keys = await Promise.all(Array.from({ length: 20 }, () => findSecretsKeys({ ...embedded, dataDir })));
  expect(new Set(keys.map((key) => Buffer.from(key?.[0] ?? []).toString('hex'))).size).toBe(1);
  expect(await readdir(dataDir)).toEqual(['secrets-key']);
});

test('SECRETS_KEY takes precedence over the file', async () => {
  const dataDir = await temporaryFolder();
  const secretsKeys = [new Uint8Array(32)] as const;
  expect(await findSecretsKeys({ ...embedded, secretsKeys, dataDir })).toBe(secretsKeys);
  expect(await readdir(dataDir)).toEqual([]);
});

test('with DATABASE_URL but no SECRETS_KEY, there is no key and no file is created', async () => {
  const dataDir = await temporaryFolder();
  expect(await findSecretsKeys({ ...embedded, databaseUrl: 'postgres://db/x', dataDir })).toBeUndefined();
  expect(await readdir(dataDir)).toEqual([]);
});

test('a damaged key file is reported without its content, and is not changed', async () => {
  const dataDir = await temporaryFolder();
  const path = join(dataDir, 'secrets-key');
  await writeFile(path, 'c2hvcnQ=');
  const reason = /^The key file \S+secrets-key can't be used: it must hold 32 bytes in base64\.$/;
  await expect(findSecretsKeys({ ...embedded, dataDir })).rejects.toThrow(reason);
  expect(await readFile(path, 'utf8')).toBe('c2hvcnQ=');
});
