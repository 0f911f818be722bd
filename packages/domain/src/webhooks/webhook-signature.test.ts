import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import {
  createSigningSecret,
  formatSigningSecret,
  type WebhookMessage,
  webhookSignature,
} from './webhook-signature.ts';

const [firstSecret, secondSecret] = [createSigningSecret(randomBytes), createSigningSecret(randomBytes)] as const;

describe('a signing secret', () => {
  it('is whsec_ and the base64 of 32 random bytes', () => {
    expect(formatSigningSecret(firstSecret)).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/);
    expect(firstSecret).not.toEqual(secondSecret);
    expect(formatSigningSecret(new Uint8Array(32))).toBe(`whsec_${'A'.repeat(43)}=`);
  });

  it('does not change when the random source reuses its buffer', () => {
    const buffer = new Uint8Array(32).fill(1);
    const secret = createSigningSecret(() => buffer);
    buffer.fill(2);
    expect(secret).toEqual(new Uint8Array(32).fill(1));
  });
});

describe('webhookSignature', () => {
  // printf %s 'evt_1.1795208000.{"a":"ü"}' | openssl dgst -sha256 -mac hmac -macopt hexkey:<32 times 07> -binary |
  // base64
  it('is "v1," and the base64 of the HMAC-SHA256 of the fixed vector', () => {
    const message = { id: 'evt_1', timestampSeconds: 1_795_208_000, body: '{"a":"ü"}' };
    expect(webhookSignature(message, [new Uint8Array(32).fill(7)])).toBe(
      'v1,nhcTE27BFxgySQEg9cHsYwCl/ZUYu0iTAn7e6UQWiwA=',
    );
  });

  const nowSeconds = () => Math.floor(Date.now() / 1_000);

  /** Verifies a message as a merchant that uses the library does. Throws if the signature is wrong. */
  function verifyAsMerchant({ id, timestampSeconds, body }: WebhookMessage, signature: string, secret: Uint8Array) {
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': `${timestampSeconds}`,
      'webhook-signature': signature,
    };
    return new Webhook(formatSigningSecret(secret)).verify(body, headers);
  }

  it('verifies with the standardwebhooks package for every body', () => {
    fc.assert(
      fc.property(fc.json(), (body) => {
        const message = { id: 'evt_1', timestampSeconds: nowSeconds(), body };
        const signature = webhookSignature(message, [firstSecret]);
        expect(verifyAsMerchant(message, signature, firstSecret)).toEqual(JSON.parse(body));
        expect(() => verifyAsMerchant({ ...message, body: `${body} ` }, signature, firstSecret)).toThrow();
        expect(() => verifyAsMerchant({ ...message, id: 'evt_2' }, signature, firstSecret)).toThrow();
        expect(() => verifyAsMerchant(message, signature, secondSecret)).toThrow();
      }),
    );
  });

  it('verifies with either of two secrets', () => {
    const message = { id: 'evt_1', timestampSeconds: nowSeconds(), body: '{}' };
    const signature = webhookSignature(message, [firstSecret, secondSecret]);
    expect(signature).toMatch(/^v1,\S{44} v1,\S{44}$/);
    for (const secret of [firstSecret, secondSecret]) expect(verifyAsMerchant(message, signature, secret)).toEqual({});
    expect(() => verifyAsMerchant(message, signature, createSigningSecret(randomBytes))).toThrow();
  });
});
