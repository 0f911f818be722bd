import { describe, expect, it } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { checkoutLink, parseCheckoutTemplate } from './checkout-link.ts';
import { createOrderToken } from './order-token.ts';

const token = createOrderToken(1 as AccountId, (count) => new Uint8Array(count).fill(7));

describe('parseCheckoutTemplate', () => {
  it.each([
    ['https://checkout.example.com/{order_token}', `https://checkout.example.com/${token}`],
    [
      'https://checkout.example.com/pay/{order_token}/start?a=b#c',
      `https://checkout.example.com/pay/${token}/start?a=b#c`,
    ],
    ['http://localhost:3000?token={order_token}&lang=en', `http://localhost:3000/?token=${token}&lang=en`],
  ])('accepts %s, and inserts the token: %s', (text, link) => {
    const template = parseCheckoutTemplate(text);
    if (template === undefined) throw new Error('rejected');
    expect(checkoutLink(template, token)).toBe(link);
  });

  it.each([
    '',
    'https://checkout.example.com/',
    'https://checkout.example.com/{token}',
    'https://checkout.example.com/{order_token}/{order_token}',
    'https://{order_token}.example.com/',
    'https://checkout.example.com{order_token}',
    'https://user@checkout.example.com/{order_token}',
    'https://checkout.example.com/#{order_token}',
    'https://checkout.example.com/a b/{order_token}',
    'https://checkout.example.com\\{order_token}',
    'checkout.example.com/{order_token}',
    'javascript:alert("{order_token}")',
    'https://:99999/{order_token}',
  ])('rejects %j', (text) => {
    expect(parseCheckoutTemplate(text)).toBeUndefined();
  });
});
