import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { validOrderFields } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import { createOrderToken } from '../links/order-token.ts';
import { newOrder } from '../orders/order.ts';
import { isBlank } from '../requests/characters.ts';
import { checkReturn, hostOf, returnUrlFor } from './return-url.ts';

const token = createOrderToken(1 as AccountId, (count) => new Uint8Array(count).fill(7));

function orderWith(fields: Parameters<typeof validOrderFields>[0], serviceOrderId = 42) {
  const assigned = {
    merchantId: 1 as AccountId,
    orderToken: token,
    createdAtMs: 1_795_000_000_000,
    expiresAtMs: null,
    metadata: null,
  };
  return { ...newOrder(validOrderFields(fields), assigned), serviceOrderId };
}

const addedNames = ['order_id', 'service_order_id', 'order_status'];
const added = 'order_id=A-1&service_order_id=42&order_status=UN_PAID';

/** Names and values of parameters, some with the names of added ones. */
const anyParameter = fc.tuple(
  fc.oneof(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.constantFrom(...addedNames)),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);

const anyOrderId = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((text) => !isBlank(text) && !/\p{Cc}/u.test(text) && text.isWellFormed());

describe('returnUrlFor', () => {
  it.each([
    ['no query', 'https://shop.example.com/thanks', `https://shop.example.com/thanks?${added}`],
    ['no path', 'https://shop.example.com', `https://shop.example.com/?${added}`],
    ['an empty query', 'https://shop.example.com/?', `https://shop.example.com/?${added}`],
    ['its own query', 'https://shop.example.com/?cart=5&x', `https://shop.example.com/?cart=5&x&${added}`],
    ['a fragment', 'https://shop.example.com/#/thanks?a=b', `https://shop.example.com/?${added}#/thanks?a=b`],
    ['query and fragment', 'https://shop.example.com/?a=b#c?d', `https://shop.example.com/?a=b&${added}#c?d`],
    [
      'unusual encoding in its query',
      'https://s.example/?a=%20+%2B&&b==&%zz',
      `https://s.example/?a=%20+%2B&&b==&%zz&${added}`,
    ],
    ['one of the added names', 'https://s.example/?order_status=PAID&a=1', `https://s.example/?a=1&${added}`],
    [
      'one of the added names, percent-encoded',
      'https://s.example/?%6frder_%73tatus=PAID',
      `https://s.example/?${added}`,
    ],
    [
      'a name that only looks like an added one',
      'https://s.example/??order_id=1',
      `https://s.example/??order_id=1&${added}`,
    ],
    [
      'letters beyond ASCII',
      'https://bücher.example/ä?ö=ü',
      `https://xn--bcher-kva.example/%C3%A4?%C3%B6=%C3%BC&${added}`,
    ],
  ])('does not change the rest of a URL with %s', (_, returnUrl, expected) => {
    expect(returnUrlFor(orderWith({ order_id: 'A-1', return_url: returnUrl }))).toBe(expected);
  });

  it("appends the three parameters after the merchant's own, in a fixed order", () => {
    fc.assert(
      fc.property(fc.array(anyParameter, { maxLength: 6 }), anyOrderId, (parameters, orderId) => {
        const query = parameters.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
        const returnUrl = `https://shop.example.com/back?${query}#end`;
        const back = new URL(returnUrlFor(orderWith({ order_id: orderId, return_url: returnUrl })));

        const ownParameters = [...new URL(returnUrl).searchParams].filter(([name]) => !addedNames.includes(name));
        expect([...back.searchParams]).toEqual([
          ...ownParameters,
          ['order_id', orderId],
          ['service_order_id', '42'],
          ['order_status', 'UN_PAID'],
        ]);
        expect([back.origin, back.pathname, back.hash]).toEqual(['https://shop.example.com', '/back', '#end']);
      }),
      { numRuns: 500 },
    );
  });

  it('is ASCII, has the same host and never contains the token, for every order_id', () => {
    fc.assert(
      fc.property(anyOrderId, fc.webUrl({ withQueryParameters: true, withFragments: true }), (orderId, returnUrl) => {
        const back = returnUrlFor(orderWith({ order_id: orderId, return_url: returnUrl }));
        expect(back).toMatch(/^[\x21-\x7e]+$/);
        expect(hostOf(back)).toBe(hostOf(returnUrl));
        expect(back).not.toContain(token);
      }),
    );
  });
});

describe('returnUrlFor with signing', () => {
  const signing = { secret: new Uint8Array(32).fill(7), signedAtSeconds: 1_795_208_000 };

  it('adds signed_at and the signature of the fixed vector', () => {
    // printf %s 'A\|1\\|42|UN_PAID|1795208000' | openssl dgst -sha256 -mac hmac -macopt hexkey:<32 times 07>
    const back = returnUrlFor(
      orderWith({ order_id: 'A|1\\', return_url: 'https://s.example/?signature=x&a=1' }),
      signing,
    );
    expect(back).toBe(
      'https://s.example/?a=1&order_id=A%7C1%5C&service_order_id=42&order_status=UN_PAID&signed_at=1795208000' +
        '&signature=v1%3D3726534d2a01579d3eb52d07db35fe462dd3af32d0bb447a625fa8e4dc3573ad',
    );
  });

  it('adds the same signature with the previous secret, if there is one', () => {
    const previousSecret = new Uint8Array(32).fill(8);
    const order = orderWith({ order_id: 'A-1' });
    const signatureOf = (secret: Uint8Array) =>
      new URL(returnUrlFor(order, { ...signing, secret })).searchParams.get('signature');
    const { searchParams } = new URL(returnUrlFor(order, { ...signing, previousSecret }));
    expect([searchParams.get('signature'), searchParams.get('previous_signature')]).toEqual([
      signatureOf(signing.secret),
      signatureOf(previousSecret),
    ]);
    const renewed = { ...signing, secret: previousSecret, previousSecret: signing.secret };
    expect(checkReturn(searchParams, renewed)).toBe('valid');
  });

  it('signs the parameters that the merchant reads from the query, for every order_id', () => {
    fc.assert(
      fc.property(anyOrderId, (orderId) => {
        const { searchParams } = new URL(returnUrlFor(orderWith({ order_id: orderId }), signing));
        const text = ['order_id', 'service_order_id', 'order_status', 'signed_at']
          .map((name) => (searchParams.get(name) ?? '').replaceAll('\\', '\\\\').replaceAll('|', '\\|'))
          .join('|');
        const hex = createHmac('sha256', signing.secret).update(text).digest('hex');
        expect(searchParams.get('signature')).toBe(`v1=${hex}`);
      }),
    );
  });

  it("keeps the merchant's own signature parameter if nothing is signed", () => {
    const returnUrl = 'https://s.example/?signature=x&signed_at=1';
    expect(returnUrlFor(orderWith({ order_id: 'A-1', return_url: returnUrl }))).toBe(`${returnUrl}&${added}`);
  });
});

describe('checkReturn', () => {
  const signing = { secret: new Uint8Array(32).fill(7), signedAtSeconds: 1_795_208_000 };
  const query = () => new URL(returnUrlFor(orderWith({ order_id: 'A|1\\' }), signing)).searchParams;

  it('accepts what returnUrlFor signed, for an hour', () => {
    expect(checkReturn(query(), signing)).toBe('valid');
    expect(checkReturn(query(), { ...signing, signedAtSeconds: signing.signedAtSeconds + 3_600 })).toBe('valid');
    expect(checkReturn(query(), { ...signing, signedAtSeconds: signing.signedAtSeconds + 3_601 })).toBe('too_old');
  });

  it.each(['order_id', 'service_order_id', 'order_status', 'signed_at', 'signature'])(
    'rejects a %s that is changed, repeated or absent',
    (name) => {
      const changed = query();
      changed.set(name, 'PAID');
      const repeated = query();
      repeated.append(name, repeated.get(name) ?? '');
      const absent = query();
      absent.delete(name);
      expect([changed, repeated].map((parameters) => checkReturn(parameters, signing))).toEqual(['wrong', 'wrong']);
      expect(checkReturn(absent, signing)).toBe(name === 'signature' ? 'missing' : 'wrong');
    },
  );

  it('rejects another secret, and values that are moved to other names', () => {
    expect(checkReturn(query(), { ...signing, secret: new Uint8Array(32).fill(8) })).toBe('wrong');
    const [orderId = '', id = '', status = '', signedAt = '', signature = ''] = [...query().entries()]
      .filter(([name]) => name !== 'cart')
      .map(([, value]) => value);
    const shifted = new URLSearchParams({
      order_id: orderId,
      service_order_id: status,
      order_status: signedAt,
      signature,
    });
    shifted.append('order_id', id);
    expect(checkReturn(shifted, signing)).toBe('wrong');
  });
});

describe('hostOf', () => {
  it.each([
    ['https://shop.example.com/a?b', 'shop.example.com'],
    ['http://localhost:3000/', 'localhost:3000'],
    ['https://bücher.example/', 'xn--bcher-kva.example'],
  ])('returns, for %s, the host %s', (url, host) => {
    expect(hostOf(url)).toBe(host);
  });
});
