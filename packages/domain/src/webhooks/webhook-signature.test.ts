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

const [first, second] = [createSigningSecret(randomBytes), createSigningSecret(randomBytes)] as const;

describe('a signing secret', () => {
  it('is whsec_ and the base64 of 32 random bytes', () => {
    expect(formatSigningSecret(first)).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/);
    expect(first).not.toEqual(second);
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
  it('is v1, and the HMAC-SHA256 of the fixed vector', () => {
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
        const signature = webhookSignature(message, [first]);
        expect(verifyAsMerchant(message, signature, first)).toEqual(JSON.parse(body));
        expect(() => verifyAsMerchant({ ...message, body: `${body} ` }, signature, first)).toThrow();
        expect(() => verifyAsMerchant({ ...message, id: 'evt_2' }, signature, first)).toThrow();
        expect(() => verifyAsMerchant(message, signature, second)).toThrow();
      }),
    );
  });

  it('verifies with either of two secrets', () => {
    const message = { id: 'evt_1', timestampSeconds: nowSeconds(), body: '{}' };
    const signature = webhookSignature(message, [first, second]);
    expect(signature).toMatch(/^v1,\S{44} v1,\S{44}$/);
    for (const secret of [first, second]) expect(verifyAsMerchant(message, signature, secret)).toEqual({});
    expect(() => verifyAsMerchant(message, signature, createSigningSecret(randomBytes))).toThrow();
  });
});
