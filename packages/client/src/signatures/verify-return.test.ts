import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { SignatureError } from '../errors.ts';
import { verifyReturn } from './verify-return.ts';

const key = Buffer.alloc(32, 7);
const secret = `whsec_${key.toString('base64')}`;
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;

/** Returns the parameters that the gateway adds to a return URL. */
function signedParameters(orderId = 'web-1001', ageSeconds = 0) {
  const signedAt = String(Math.floor(Date.now() / 1_000) - ageSeconds);
  const text = [orderId.replaceAll('\\', '\\\\').replaceAll('|', '\\|'), '42', 'PAID', signedAt].join('|');
  return {
    order_id: orderId,
    service_order_id: '42',
    order_status: 'PAID',
    signed_at: signedAt,
    signature: `v1=${createHmac('sha256', key).update(text).digest('hex')}`,
  };
}

afterEach(() => {
  vi.useRealTimers();
});

test('verifyReturn accepts a signature computed with openssl', async () => {
  // printf %s 'A\|1\\|42|UN_PAID|1795208000' | openssl dgst -sha256 -mac hmac -macopt hexkey:<32 times 07>
  vi.setSystemTime(1_795_208_000_000);
  const address =
    'https://s.example/?a=1&order_id=A%7C1%5C&service_order_id=42&order_status=UN_PAID&signed_at=1795208000' +
    '&signature=v1%3D3726534d2a01579d3eb52d07db35fe462dd3af32d0bb447a625fa8e4dc3573ad';
  expect(await verifyReturn(address, secret)).toMatchObject({ order_id: 'A|1\\', order_status: 'UN_PAID' });
});

const parameters = signedParameters();
const query = String(new URLSearchParams(parameters));

test.each([
  ['a URL', `https://shop.example.com/thanks?cart=7&${query}`],
  ['a URL with a fragment', `https://shop.example.com/thanks?${query}#top?x`],
  ['a path', `/thanks?${query}`],
  ['a query', query],
  ['a query with its question mark', `?${query}`],
  ['a URL object', new URL(`https://shop.example.com/thanks?${query}`)],
  ['URLSearchParams', new URLSearchParams(query)],
])('verifyReturn accepts %s', async (_, address) => {
  expect(await verifyReturn(address, secret)).toEqual({
    order_id: 'web-1001',
    service_order_id: 42,
    order_status: 'PAID',
    signed_at: new Date(Number(parameters.signed_at) * 1_000),
  });
});

test('verifyReturn accepts every order_id', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1 }), async (orderId) => {
      const { order_id } = await verifyReturn(new URLSearchParams(signedParameters(orderId)), secret);
      expect(order_id).toBe(orderId);
    }),
  );
});

test('verifyReturn accepts any of several secrets', async () => {
  expect(await verifyReturn(query, [otherSecret, secret])).toMatchObject({ order_status: 'PAID' });
});

test('verifyReturn accepts the previous signature, but only once', async () => {
  const { signature } = parameters;
  const renewed = new URLSearchParams({
    ...parameters,
    signature: `v1=${'0'.repeat(64)}`,
    previous_signature: signature,
  });
  expect(await verifyReturn(renewed, [secret])).toMatchObject({ order_status: 'PAID' });
  await expect(verifyReturn(renewed, otherSecret)).rejects.toThrow(SignatureError);
  renewed.append('previous_signature', signature);
  await expect(verifyReturn(renewed, secret)).rejects.toThrow(SignatureError);
});

test.each([
  ['a different secret', query, otherSecret],
  ['a different order_id', query.replace('web-1001', 'web-1002'), secret],
  ['a different service_order_id', query.replace('=42', '=43'), secret],
  ['a different status', query.replace('PAID', 'UN_PAID'), secret],
  ['a different time', query.replace(/signed_at=\d+/, `signed_at=${Number(parameters.signed_at) - 1}`), secret],
  ['a different version', query.replace('v1%3D', 'v2%3D'), secret],
  ['upper-case hex', query.replace(/[0-9a-f]{64}/, (hex) => hex.toUpperCase()), secret],
  ['half a signature', query.slice(0, -32), secret],
  ['no signature', query.replace(/&signature=.+/, ''), secret],
  ['a second status', `${query}&order_status=PAID`, secret],
  ['a moved separator', query.replace('web-1001', 'web-1001%7C42').replace('=42', '='), secret],
  ['no query', 'https://shop.example.com/thanks', secret],
])('verifyReturn rejects %s', async (_, address, key) => {
  await expect(verifyReturn(address, key)).rejects.toThrow(SignatureError);
});

test('toleranceSeconds replaces the default of one hour', async () => {
  const old = new URLSearchParams(signedParameters('web-1001', 3_700));
  await expect(verifyReturn(old, secret)).rejects.toThrow('too old');
  expect(await verifyReturn(old, secret, { toleranceSeconds: 86_400 })).toMatchObject({ order_id: 'web-1001' });
});
