import { type CheckoutTemplate, parseCheckoutTemplate } from '@gateway/domain/checkout-link';
import type { MerchantId } from '@gateway/domain/merchant';
import { type Order, type OrderFields, openOrder } from '@gateway/domain/order';
import type { LinkedOrder } from '@gateway/domain/order-store';
import { createOrderToken } from '@gateway/domain/order-token';
import { validOrderFields } from '@gateway/domain/testing/sample-orders';
import naughtyStrings from 'big-list-of-naughty-strings/blns.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { pageLanguages } from './localization.ts';

import { paymentJson, paymentPage } from './payment-page.ts';

const token = createOrderToken((count) => new Uint8Array(count).fill(7));

/** Texts that have broken other pages, and texts that would break out of the elements of this page. */
const texts: readonly string[] = [
  ...naughtyStrings.filter((text) => text !== ''),
  ...[
    '</bdi></dd></dl>',
    '</title><script>alert(1)</script>',
    '</style><script>alert(1)</script>',
    '"><svg onload=alert(1)>',
  ],
  ...[
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
    '<!--',
    '-->',
    ']]>',
    '&#60;script&#62;',
    '#{1}',
    '{{1}}',
  ],
  ...['\u202e\u2066\u2067\u2068', '\u2028\u2029', '\ufeff', '\r\nset-cookie: a=b\r\n\r\n<html>', 'javascript:alert(1)'],
];

function orderWith(fields: Partial<OrderFields>): Order {
  const order = openOrder(
    { ...validOrderFields({ order_id: 'x' }), ...fields },
    {
      merchantId: 1 as MerchantId,
      orderToken: token,
      createdAtMs: 1_795_000_000_000,
      expiresAtMs: null,
    },
  );
  return { ...order, serviceOrderId: 42 };
}

function named(name: string): LinkedOrder['merchant'] {
  return { name, mode: 'live', signingSecret: null };
}

/** The tags of the page with their attributes, but without text and attribute values. */
function skeletonOf(page: string): string[] {
  return [...page.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replaceAll(/="[^"]*"/g, '=""'));
}

/** Decodes the entities of a text. */
function unescaped(text: string): string {
  const named: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
  return text.replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (entity) => named[entity] ?? entity);
}

const templates: (CheckoutTemplate | undefined)[] = [
  undefined,
  parseCheckoutTemplate('https://checkout.example.com/{order_token}'),
];

test.each(templates)('no stored text changes the structure of the page, with checkout %s', async (template) => {
  const plain = skeletonOf(await paymentPage({ order: orderWith({}), merchant: named('x') }, template, 'en'));
  for (const text of texts) {
    const order = orderWith({ order_id: text, order_note: text });
    const page = await paymentPage({ order, merchant: named(text) }, template, 'en');
    expect(skeletonOf(page), JSON.stringify(text)).toEqual(plain);
    const inner = [...page.matchAll(/<bdi>([^<]*)<\/bdi>/g)].map(([, content]) => unescaped(content ?? ''));
    expect(inner.filter((content) => content === text).length, JSON.stringify(text)).toBeGreaterThanOrEqual(3);
  }
});

test('no stored text changes where the return link goes', async () => {
  for (const text of texts) {
    const order = orderWith({ order_id: text, order_note: text });
    for (const language of pageLanguages) {
      const page = await paymentPage({ order, merchant: named(text) }, undefined, language);
      const addresses = [...page.matchAll(/ href="([^"]*)"/g)].map(([, address]) => unescaped(address ?? ''));
      expect(addresses).toHaveLength(1);
      const { origin, searchParams } = new URL(addresses[0] ?? '');
      expect([origin, searchParams.get('order_id')]).toEqual(['https://shop.example.com', text.toWellFormed()]);
    }
  }
});

test('no return_url breaks out of its attribute', async () => {
  const plain = skeletonOf(await paymentPage({ order: orderWith({}), merchant: named('x') }, undefined, 'en'));
  for (const rest of [
    '?a="onclick=alert(1)',
    "?'><script>",
    '#"><img>',
    '/<b>',
    '?a=&lt;&amp;order_id=9',
    '?{{7*7}}',
  ]) {
    const order = orderWith({ return_url: `https://shop.example.com/${rest}` });
    expect(skeletonOf(await paymentPage({ order, merchant: named('x') }, undefined, 'en')), rest).toEqual(plain);
  }
});

test('the JSON holds every text unchanged', () => {
  for (const text of texts) {
    const json = paymentJson(
      { order: orderWith({ order_id: text, order_note: text }), merchant: named(text) },
      undefined,
    );
    expect(JSON.parse(json)).toMatchObject({ merchant_name: text, order_id: text, order_note: text });
  }
});
