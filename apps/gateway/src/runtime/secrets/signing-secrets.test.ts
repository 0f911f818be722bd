import { randomBytes } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { createSigningSecrets } from './signing-secrets.ts';

const [merchant, otherMerchant] = [7, 8] as [AccountId, AccountId];
const secret = new Uint8Array(32).fill(5);
const secrets = createSigningSecrets([randomBytes(32)]);
const stored = secrets.encrypt(merchant, secret);

test('a stored secret is decrypted for its merchant', () => {
  expect(secrets.decrypt(merchant, stored)).toEqual(Buffer.from(secret));
});

test('a stored secret begins with its version and does not contain the secret', () => {
  expect([stored[0], stored.length]).toEqual([1, 61]);
  expect(Buffer.from(stored).includes(secret.subarray(0, 4))).toBe(false);
});

test('encrypting the same secret twice gives different results', () => {
  expect(secrets.encrypt(merchant, secret)).not.toEqual(stored);
});

test('a stored secret is not decrypted for another merchant or with another key', () => {
  expect(secrets.decrypt(otherMerchant, stored)).toBeUndefined();
  expect(createSigningSecrets([randomBytes(32)]).decrypt(merchant, stored)).toBeUndefined();
});

test('every key decrypts what it encrypted, and the first one encrypts', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const both = createSigningSecrets([first, second]);
  const older = createSigningSecrets([second]).encrypt(merchant, secret);
  const newer = both.encrypt(merchant, secret);
  expect([both.decrypt(merchant, older), both.decrypt(merchant, newer)]).toEqual([
    Buffer.from(secret),
    Buffer.from(secret),
  ]);
  expect(createSigningSecrets([second]).decrypt(merchant, newer)).toBeUndefined();
});

test('a stored secret that was changed or truncated is not decrypted', () => {
  for (const index of stored.keys()) {
    const changed = Uint8Array.from(stored).with(index, (stored[index] ?? 0) ^ 1);
    expect(secrets.decrypt(merchant, changed), `byte ${index}`).toBeUndefined();
    expect(secrets.decrypt(merchant, stored.subarray(0, index)), `${index} bytes`).toBeUndefined();
  }
});
