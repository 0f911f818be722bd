import type { Merchant, MerchantId } from '@gateway/domain/merchant';
import { success } from '@gateway/domain/result';
import { expect, test } from 'vitest';
import { withRateLimit } from './rate-limit.ts';

const nobody = { clientId: undefined, clientSecret: undefined };

function setUp(callsPerSecond: number) {
  let nowMs = 5_000;
  let merchantId = 1;
  const limited = withRateLimit(
    async () => success<Merchant>({ id: merchantId as MerchantId, name: 'Shop', checksumMode: 'versioned' }),
    {
      callsPerSecond,
      monotonicNow: () => nowMs,
    },
  );
  return {
    call: async () => {
      const answer = await limited(nobody, 1_000);
      return answer.ok ? 'passed' : answer.failure;
    },
    pass: (ms: number) => {
      nowMs += ms;
    },
    as: (id: number) => {
      merchantId = id;
    },
  };
}

test('a merchant may make a second of its calls at once, and then one for each that grows back', async () => {
  const { call, pass } = setUp(10);
  const first = await Promise.all(Array.from({ length: 11 }, call));
  expect(first.filter((answer) => answer === 'passed').length).toBe(10);
  expect(first.at(-1)).toEqual({ kind: 'rate_limited', retryAfterSeconds: 1, merchantId: 1 });
  pass(99);
  expect(await call()).not.toBe('passed');
  pass(1);
  expect(await call()).toBe('passed');
  expect(await call()).not.toBe('passed');
  pass(60_000);
  const later = await Promise.all(Array.from({ length: 20 }, call));
  expect(later.filter((answer) => answer === 'passed').length).toBe(10);
});

test('one merchant does not use up the share of another', async () => {
  const { call, as } = setUp(1);
  expect(await call()).toBe('passed');
  expect(await call()).not.toBe('passed');
  as(2);
  expect(await call()).toBe('passed');
});

test('a call that the credentials refuse is not counted', async () => {
  const refusing = withRateLimit(async () => ({ ok: false, failure: { kind: 'unauthenticated' } }), {
    callsPerSecond: 1,
    monotonicNow: () => 0,
  });
  for (let call = 0; call < 3; call += 1)
    expect(await refusing(nobody, 1_000)).toEqual({ ok: false, failure: { kind: 'unauthenticated' } });
});
