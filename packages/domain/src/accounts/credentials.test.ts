import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  areWellFormed,
  createClientId,
  createClientSecret,
  hashSecret,
  liveSecretsMax,
  matchesSecret,
  merchantModeOf,
} from './credentials.ts';

const clientId = 'app_0123456789ABCDEFGHIJKLMN';
const clientSecret = 'sk_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg';

describe('new credentials', () => {
  it('have the public format', () => {
    expect(createClientId(randomBytes)).toMatch(/^app_[0-9A-Za-z]{24}$/);
    expect(createClientSecret(randomBytes)).toMatch(/^sk_[0-9A-Za-z]{43}$/);
  });

  it('are well formed and unique', () => {
    const created = Array.from({ length: 200 }, () => ({
      clientId: createClientId(randomBytes),
      clientSecret: createClientSecret(randomBytes),
    }));

    expect(created.every(areWellFormed)).toBe(true);
    expect(new Set(created.map((credentials) => credentials.clientId)).size).toBe(200);
    expect(new Set(created.map((credentials) => credentials.clientSecret)).size).toBe(200);
  });
});

it.each([
  ['live', 'live'],
  ['test', 'test'],
  ['checkout', undefined],
] as const)('a client id of the kind %s has the mode %s', (kind, mode) => {
  const created = createClientId(randomBytes, kind);
  expect([merchantModeOf(created), merchantModeOf(`${created}0`)]).toEqual([mode, undefined]);
});

describe('areWellFormed', () => {
  it('accepts the format that the gateway issues', () => {
    expect(areWellFormed({ clientId, clientSecret })).toBe(true);
  });

  it.each([
    { clientId: '', clientSecret: '' },
    { clientId: undefined, clientSecret: undefined },
    { clientId: clientId.slice(0, -1), clientSecret: clientSecret.slice(0, -1) },
    { clientId: `${clientId}0`, clientSecret: `${clientSecret}0` },
    { clientId: clientId.replace('app_', 'App_'), clientSecret: clientSecret.replace('sk_', 'pk_') },
    { clientId: clientId.replace('0', '-'), clientSecret: clientSecret.replace('0', '_') },
    { clientId: clientId.replace('0', 'é'), clientSecret: clientSecret.replace('0', '٠') },
    { clientId: `${clientId}\n`, clientSecret: `${clientSecret}\n` },
    { clientId: ` ${clientId}`, clientSecret: ` ${clientSecret}` },
    { clientId: clientSecret, clientSecret: clientId },
  ])(
    'rejects the client id $clientId and the secret $clientSecret, each together with a valid counterpart',
    (wrong) => {
      expect(areWellFormed({ clientId: wrong.clientId, clientSecret })).toBe(false);
      expect(areWellFormed({ clientId, clientSecret: wrong.clientSecret })).toBe(false);
    },
  );
});

describe('hashSecret', () => {
  it('is SHA-256', () => {
    // printf %s <secret> | openssl dgst -sha256
    expect(Buffer.from(hashSecret(clientSecret)).toString('hex')).toBe(
      '6ac4f4f61a18efd244b40fe0271fc5f90f91f7d5ad9ee3cbfd3c0880cfe52b1d',
    );
  });
});

describe('matchesSecret', () => {
  const presented = hashSecret(clientSecret);
  const otherHashes = Array.from({ length: 6 }, (_, index) => hashSecret(`another ${index}`));

  it('allows five secrets', () => {
    expect(liveSecretsMax).toBe(5);
  });

  it.each([0, 1, 2, 3, 4, 5])('rejects a secret that is not among %i stored secrets', (count) => {
    expect(matchesSecret(presented, otherHashes.slice(0, count))).toBe(false);
  });

  const slots = [1, 2, 3, 4, 5].flatMap((count) => Array.from({ length: count }, (_, index) => ({ count, index })));
  it.each(slots)('finds the secret at index $index of $count stored secrets', ({ count, index }) => {
    expect(matchesSecret(presented, otherHashes.slice(0, count).with(index, presented))).toBe(true);
  });

  it('compares at most five secrets', () => {
    expect(matchesSecret(presented, [...otherHashes.slice(0, 5), presented])).toBe(false);
  });

  it.each([0, 31])('rejects a hash that differs in byte %i', (index) => {
    const byte = presented[index] ?? 0;
    expect(matchesSecret(presented, [Uint8Array.from(presented).with(index, byte ^ 1)])).toBe(false);
  });

  it.each([0, 1, 5])('does not match a hash of zeros with an empty slot, with %i stored secrets', (count) => {
    expect(matchesSecret(new Uint8Array(32), otherHashes.slice(0, count))).toBe(false);
  });
});
