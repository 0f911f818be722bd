import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test, vi } from 'vitest';
import { SignatureError } from '../errors.ts';
import { verifyWebhook } from './verify-webhook.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const event = {
  id: 'evt_1',
  type: 'order.paid',
  timestamp: '2026-11-22T20:00:00.000+00:00',
  data: { order_id: 'web-1001', order_note: 'café 💶' },
};
const body = JSON.stringify(event);

afterEach(() => {
  vi.useRealTimers();
});

/** Returns webhook headers signed by the reference library of Standard Webhooks. */
function signed(options: { secrets?: string[]; id?: string; body?: string; ageSeconds?: number } = {}) {
  const { secrets = [secret], id = 'evt_1', body: content = body, ageSeconds = 0 } = options;
  const signedAt = new Date(Date.now() - ageSeconds * 1_000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(signedAt.getTime() / 1_000)),
    'webhook-signature': secrets.map((key) => new Webhook(key).sign(id, signedAt, content)).join(' '),
  };
}

test('verifyWebhook returns the event of a webhook that the reference library signed', async () => {
  expect(await verifyWebhook(body, signed(), secret)).toEqual(event);
});

test('the reference library accepts the same headers', () => {
  expect(new Webhook(secret).verify(body, signed())).toEqual(event);
});

test.each([
  ['bytes', new TextEncoder().encode(body)],
  ['a Buffer', Buffer.from(body)],
])('verifyWebhook accepts the body as %s', async (_, bytes) => {
  expect(await verifyWebhook(bytes, signed(), secret)).toEqual(event);
});

test('verifyWebhook accepts Headers, the headers of Node.js, and names in upper case', async () => {
  const headers = signed();
  const entries = Object.entries(headers);
  for (const form of [
    new Headers(headers),
    Object.fromEntries(entries.map(([name, value]) => [name.toUpperCase(), value])),
    Object.fromEntries(entries.map(([name, value]) => [name, [value]])),
  ]) {
    expect(await verifyWebhook(body, form, secret)).toEqual(event);
  }
});

test('verifyWebhook accepts any of several signatures and any of several secrets', async () => {
  const signedTwice = signed({ secrets: [otherSecret, secret] });
  expect(await verifyWebhook(body, signedTwice, secret)).toEqual(event);
  expect(await verifyWebhook(body, signedTwice, otherSecret)).toEqual(event);
  expect(await verifyWebhook(body, signed(), [otherSecret, secret])).toEqual(event);
  const headers = signed();
  const signatures = `v1a,AAAA v2, v1 v1, v1,%%% ${headers['webhook-signature']}`;
  expect(await verifyWebhook(body, { ...headers, 'webhook-signature': signatures }, secret)).toEqual(event);
});

test.each([
  ['a different secret', body, signed({ secrets: [otherSecret] })],
  ['a different body', `${body} `, signed()],
  ['a different id', body, { ...signed(), 'webhook-id': 'evt_2' }],
  ['a different time', body, { ...signed(), 'webhook-timestamp': String(Number(signed()['webhook-timestamp']) - 1) }],
  [
    'a different version',
    body,
    { ...signed(), 'webhook-signature': signed()['webhook-signature'].replace('v1,', 'v2,') },
  ],
  ['half a signature', body, { ...signed(), 'webhook-signature': signed()['webhook-signature'].slice(0, 25) }],
  ['a signature that is not base64', body, { ...signed(), 'webhook-signature': 'v1,%%%' }],
  ['no signature', body, { ...signed(), 'webhook-signature': '' }],
  ['a time that is not a number', body, { ...signed(), 'webhook-timestamp': 'now' }],
  ['no headers', body, {}],
])('verifyWebhook rejects %s', async (_, content, headers) => {
  await expect(verifyWebhook(content, headers, secret)).rejects.toThrow(SignatureError);
});

test.each([
  [300, true],
  [301, false],
  [-300, true],
  [-301, false],
])('verifyWebhook accepts a webhook %i seconds old: %s, like the reference library', async (ageSeconds, accepted) => {
  vi.setSystemTime('2026-11-22T20:00:00Z');
  const headers = signed({ ageSeconds });
  const verified = await verifyWebhook(body, headers, secret).then(
    () => true,
    () => false,
  );
  expect(verified).toBe(accepted);
  const reference = () => new Webhook(secret).verify(body, headers);
  if (accepted) expect(reference()).toEqual(event);
  else expect(reference).toThrow();
});

test('toleranceSeconds replaces the default of five minutes', async () => {
  const headers = signed({ ageSeconds: 3_000 });
  expect(await verifyWebhook(body, headers, secret, { toleranceSeconds: 3_600 })).toEqual(event);
  await expect(verifyWebhook(body, headers, secret, { toleranceSeconds: 60 })).rejects.toThrow('too old');
});

test.each([undefined, '', 'whsec_', 'whsec_%%%', secret.slice('whsec_'.length)])(
  'verifyWebhook throws a TypeError for the signing secret %s and does not reveal it',
  async (wrong) => {
    const error = await verifyWebhook(body, signed(), wrong as string).catch((cause) => cause);
    expect(error).toEqual(new TypeError('A signing secret must be whsec_ followed by base64'));
  },
);

test('verifyWebhook says that it needs the raw body if it gets parsed JSON', async () => {
  await expect(verifyWebhook(event as never, signed(), secret)).rejects.toThrow('The body must be the raw body');
});
