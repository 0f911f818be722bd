import { randomBytes } from 'node:crypto';
import {
  type AccountDirectory,
  type AccountLookup,
  createClientId,
  createClientSecret,
  hashSecret,
  type StoredSecret,
} from '@order-gateway/domain/accounts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { merchant } from '../../test/helpers/fixed-deps.ts';
import { credentialLimits } from '../limits.ts';
import { createAuthenticate } from './authenticate.ts';

const { cachedAccountsMax, refreshAgeMs } = credentialLimits;

const clientId = createClientId(randomBytes);
const clientSecret = createClientSecret(randomBytes);

/** Sets up a directory with one account. Tests change its secrets and the clock, and read which ids were looked up. */
function setUp() {
  let nowMs = 1_000_000;
  let setBackMs = 0;
  const state: {
    secrets: StoredSecret[];
    lookups: string[];
    lookupResult: AccountLookup | Promise<AccountLookup> | undefined;
  } = {
    secrets: [{ hash: hashSecret(clientSecret), endsAtMs: null }],
    lookups: [],
    lookupResult: undefined,
  };
  const directory: AccountDirectory = {
    async findAccount(id) {
      state.lookups.push(id);
      if (state.lookupResult !== undefined) return state.lookupResult;
      return id === clientId
        ? { kind: 'found', stored: { account: merchant, secrets: state.secrets } }
        : { kind: 'unknown' };
    },
  };
  const check = createAuthenticate({ directory, now: () => nowMs - setBackMs, monotonicNow: () => nowMs });
  const authenticate = (credentials: Parameters<typeof check>[0], timeoutMs = 60_000) => check(credentials, timeoutMs);
  const advance = (ms: number) => {
    nowMs += ms;
  };
  const setClockBack = (ms: number) => {
    setBackMs += ms;
  };
  return { authenticate, state, advance, setClockBack };
}

const unauthenticated = { ok: false, failure: { kind: 'unauthenticated' } };
const passed = { ok: true, value: merchant };

test('valid credentials pass, and are looked up only once while the cache is fresh', async () => {
  const { authenticate, state } = setUp();
  for (let call = 0; call < 10; call += 1) expect(await authenticate({ clientId, clientSecret })).toEqual(passed);
  expect(state.lookups).toEqual([clientId]);
});

test('all kinds of invalid credentials get the same error, and only well-formed ones are looked up', async () => {
  const { authenticate, state } = setUp();
  const unknownId = createClientId(randomBytes);
  for (const credentials of [
    { clientId: undefined, clientSecret },
    { clientId, clientSecret: undefined },
    { clientId: 'app_x', clientSecret },
    { clientId, clientSecret: `${clientSecret}x` },
    { clientId: unknownId, clientSecret },
    { clientId, clientSecret: createClientSecret(randomBytes) },
  ]) {
    expect(await authenticate(credentials)).toEqual(unauthenticated);
  }
  expect(state.lookups).toEqual([unknownId, clientId]);
});

test('an account is dropped from the cache as soon as any lookup finds it disabled', async () => {
  const { authenticate, state } = setUp();
  expect(await authenticate({ clientId, clientSecret })).toEqual(passed);
  state.lookupResult = { kind: 'unknown' };
  await authenticate({ clientId, clientSecret: createClientSecret(randomBytes) });
  expect(await authenticate({ clientId, clientSecret })).toEqual(unauthenticated);
});

test('a wrong secret of a cached account causes a lookup each time, like an unknown client id', async () => {
  const { authenticate, state } = setUp();
  for (let call = 0; call < 3; call += 1) await authenticate({ clientId, clientSecret });
  for (let call = 0; call < 3; call += 1) {
    const wrong = createClientSecret(randomBytes);
    expect(await authenticate({ clientId, clientSecret: wrong })).toEqual(unauthenticated);
    expect(await authenticate({ clientId: createClientId(randomBytes), clientSecret })).toEqual(unauthenticated);
  }
  expect(state.lookups.length).toBe(1 + 6);
});

test('credentials that do not match are rejected after 25 ms if their lookup is faster, regardless of its result', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { authenticate, state } = setUp();
  const found: AccountLookup = { kind: 'found', stored: { account: merchant, secrets: state.secrets } };
  const disabled: AccountLookup = { kind: 'unknown' };
  const revoked: AccountLookup = { kind: 'found', stored: { account: merchant, secrets: [] } };
  const rejected: number[] = [];
  for (const lookup of [found, disabled, revoked]) {
    for (const lookupMs of [0, 1, 20]) {
      state.lookupResult = new Promise((resolve) => setTimeout(resolve, lookupMs, lookup));
      const startedAt = Date.now();
      const result = authenticate({ clientId, clientSecret: createClientSecret(randomBytes) });
      result.then(() => rejected.push(Date.now() - startedAt));
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await result).toEqual(unauthenticated);
    }
  }
  expect(rejected).toEqual(Array(9).fill(25));
});

test('a new secret works immediately', async () => {
  const { authenticate, state } = setUp();
  await authenticate({ clientId, clientSecret });
  const added = createClientSecret(randomBytes);
  state.secrets = [...state.secrets, { hash: hashSecret(added), endsAtMs: null }];
  expect(await authenticate({ clientId, clientSecret: added })).toEqual(passed);
});

test('a revoked secret stops working within a second, and an expiring one at its expiry', async () => {
  const { authenticate, state, advance } = setUp();
  const expiringSecret = createClientSecret(randomBytes);
  state.secrets = [...state.secrets, { hash: hashSecret(expiringSecret), endsAtMs: 1_000_100 }];
  expect(await authenticate({ clientId, clientSecret: expiringSecret })).toEqual(passed);
  advance(100);
  expect(await authenticate({ clientId, clientSecret: expiringSecret })).toEqual(unauthenticated);
  for (let call = 0; call < 3; call += 1) expect(await authenticate({ clientId, clientSecret })).toEqual(passed);
  state.secrets = [];
  advance(999);
  expect(await authenticate({ clientId, clientSecret })).toEqual(unauthenticated);
});

test('an account in use is refreshed before its cache entry expires', async () => {
  const { authenticate, state, advance } = setUp();
  await authenticate({ clientId, clientSecret });
  advance(refreshAgeMs - 1);
  await authenticate({ clientId, clientSecret });
  expect(state.lookups.length).toBe(1);
  advance(1);
  await authenticate({ clientId, clientSecret });
  await expect.poll(() => state.lookups.length).toBe(2);
  advance(refreshAgeMs);
  await authenticate({ clientId, clientSecret });
  expect(state.lookups.length).toBe(3);
});

test('a cached account is valid for 0.8 seconds', async () => {
  for (const [ageMs, result] of [
    [799, passed],
    [800, unauthenticated],
  ] as const) {
    const { authenticate, state, advance } = setUp();
    await authenticate({ clientId, clientSecret });
    state.secrets = [];
    advance(ageMs);
    expect(await authenticate({ clientId, clientSecret })).toEqual(result);
  }
});

test('the account that was looked up least recently is dropped from a full cache', async () => {
  const { authenticate, state } = setUp();
  state.lookupResult = { kind: 'found', stored: { account: merchant, secrets: state.secrets } };
  const ids = Array.from({ length: cachedAccountsMax }, () => createClientId(randomBytes));
  for (const id of ids) await authenticate({ clientId: id, clientSecret });
  const [first = '', second = '', third = ''] = ids;
  await authenticate({ clientId: first, clientSecret: createClientSecret(randomBytes) });
  await authenticate({ clientId, clientSecret });
  state.lookups = [];
  for (const id of [first, third, second]) await authenticate({ clientId: id, clientSecret });
  expect(state.lookups).toEqual([second]);
});

test('concurrent calls of one account share one lookup', async () => {
  const { authenticate, state } = setUp();
  const results = await Promise.all(Array.from({ length: 20 }, () => authenticate({ clientId, clientSecret })));
  expect(results.every((result) => result.ok)).toBe(true);
  expect(state.lookups.length).toBe(1);
});

test('a call does not use a lookup that began long before it, when a revoked secret was still valid', async () => {
  const { authenticate, state, advance } = setUp();
  const { promise, resolve } = Promise.withResolvers<AccountLookup>();
  state.lookupResult = promise;
  const before = authenticate({ clientId, clientSecret });
  const found: AccountLookup = { kind: 'found', stored: { account: merchant, secrets: state.secrets } };
  state.secrets = [];
  state.lookupResult = undefined;
  advance(1_000);
  const after = authenticate({ clientId, clientSecret });
  resolve(found);
  expect(await after).toEqual(unauthenticated);
  expect(await before).toEqual(passed);
  expect(await authenticate({ clientId, clientSecret })).toEqual(unauthenticated);
});

test('the lookups of a flood of unknown client ids are bounded and do not block a known account', async () => {
  const { authenticate, state, advance } = setUp();
  await authenticate({ clientId, clientSecret });
  advance(900);
  const flood = Array.from({ length: 5_000 }, () =>
    authenticate({ clientId: createClientId(randomBytes), clientSecret }),
  );
  const knownAccount = authenticate({ clientId, clientSecret });
  const kinds = (await Promise.all(flood)).map((result) => (result.ok ? 'passed' : result.failure.kind));
  expect(kinds.filter((kind) => kind === 'overloaded').length).toBe(5_000 - 4_096);
  expect(kinds).not.toContain('passed');
  expect(await knownAccount).toEqual(passed);
  expect(state.lookups.length).toBe(4_096 + 2);
});

test("a merchant's first call passes in the middle of a flood of unknown client ids", async () => {
  const { authenticate, state } = setUp();
  // A flood of 8,000 calls per second sends this many while the process is busy for an eighth of a second.
  const flood = Array.from({ length: 1_000 }, () =>
    authenticate({ clientId: createClientId(randomBytes), clientSecret }),
  );
  expect(await authenticate({ clientId, clientSecret })).toEqual(passed);
  await Promise.all(flood);
  expect(state.lookups.length).toBe(1_001);
});

test('an unavailable directory causes a different error than wrong credentials', async () => {
  const { authenticate, state } = setUp();
  state.lookupResult = { kind: 'unavailable' };
  expect(await authenticate({ clientId, clientSecret })).toEqual({ ok: false, failure: { kind: 'unavailable' } });
});

test('a revoked secret stops working within a second even if the clock of the machine is set back', async () => {
  const { authenticate, state, advance, setClockBack } = setUp();
  expect(await authenticate({ clientId, clientSecret })).toEqual(passed);
  state.secrets = [];
  setClockBack(3_600_000);
  advance(1_000);
  expect(await authenticate({ clientId, clientSecret })).toEqual(unauthenticated);
});

test('a call waits for its lookup no longer than its own time limit', async () => {
  const { authenticate, state } = setUp();
  const { promise, resolve } = Promise.withResolvers<AccountLookup>();
  state.lookupResult = promise;
  const late = { ok: false, failure: { kind: 'deadline_exceeded' } };
  expect(await authenticate({ clientId, clientSecret }, 20)).toEqual(late);
  resolve({ kind: 'unknown' });
});
