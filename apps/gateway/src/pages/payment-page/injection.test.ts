import { type AccountId, type MerchantMode, noBrand } from '@order-gateway/domain/accounts';
import { type CheckoutTemplate, parseCheckoutTemplate } from '@order-gateway/domain/links';
import { type LinkedOrder, type Order, type OrderFields, orderStatuses } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { pageLanguages } from '@order-gateway/pages/localization';
import naughtyStrings from 'big-list-of-naughty-strings/blns.json' with { type: 'json' };
import { describe, expect, test } from 'vitest';
import { fixedDeps } from '../../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../../test/helpers/memory-logger.ts';
import { paymentJson, paymentPage } from './payment-page.ts';

/** Texts that often break web pages, and texts that would break out of the elements of this page. */
const texts: readonly string[] = [
  ...naughtyStrings.filter((text) => text !== ''),
  ...['</bdi></dd></dl>', '</title><script>alert(1)</script>', '</style><script>alert(1)</script>'],
  ...['"><svg onload=alert(1)>', "' onmouseover='alert(1)", '" autofocus onfocus="alert(1)'],
  ...['<!--', '-->', ']]>', '&#60;script&#62;', '#{1}', '{{1}}'],
  ...['\u202e\u2066\u2067\u2068', '\u2028\u2029', '\ufeff', '\r\nset-cookie: a=b\r\n\r\n<html>', 'javascript:alert(1)'],
];

const sample = sampleOrder(1 as AccountId, { order_id: 'x' });

function orderWith(fields: Partial<OrderFields>): Order {
  return { ...sample, fields: { ...sample.fields, ...fields } };
}

function merchantNamed(name: string, mode: MerchantMode = 'live'): LinkedOrder['merchant'] {
  return { clientId: 'app_1', name, mode, isDisabled: false, returnSecrets: [], brand: null };
}

const fixed = fixedDeps(createMemoryLogger().logger);

/** Returns the tags of a page with the names of their attributes, but without attribute values and text. */
function skeletonOf(page: string): string[] {
  return [...page.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replaceAll(/="[^"]*"/g, '=""'));
}

/** Returns a text with its HTML entities decoded. */
function unescaped(text: string): string {
  const characters: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
  return text.replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (entity) => characters[entity] ?? entity);
}

const checkoutTemplate = parseCheckoutTemplate('https://checkout.example.com/{order_token}');

/** Every kind of page: with a checkout, without one, with the form of a test order, and without a way to pay. */
const pages: [string, Partial<Order>, MerchantMode, CheckoutTemplate | undefined][] = [
  ...orderStatuses.map((orderStatus) => [orderStatus, { orderStatus }, 'live', undefined] as (typeof pages)[number]),
  ['UN_PAID with a checkout', {}, 'live', checkoutTemplate],
  ['UN_PAID in test mode', {}, 'test', undefined],
];

describe.each(pages)('%s', (_, state, mode, template) => {
  const deps = { ...fixed, checkoutTemplate: template };
  const pageOf = (fields: Partial<OrderFields>, name: string, language = pageLanguages[0]) =>
    paymentPage(deps, { order: { ...orderWith(fields), ...state }, merchant: merchantNamed(name, mode) }, language);

  test('no stored text changes the structure of the page', async () => {
    const long = 'x'.repeat(1_000);
    const skeletons = [skeletonOf(await pageOf({}, 'x')), skeletonOf(await pageOf({ order_note: long }, 'x'))];
    for (const text of texts) {
      const page = await pageOf({ order_id: text, order_note: text }, text);
      expect(skeletons, JSON.stringify(text)).toContainEqual(skeletonOf(page));
      const inner = [...page.matchAll(/<bdi[^>]*>([^<]*)<\/bdi>/g)].map(([, content]) => unescaped(content ?? ''));
      expect(inner.filter((content) => content === text).length, JSON.stringify(text)).toBeGreaterThanOrEqual(3);
    }
  });

  test('no stored text changes the links of the page', async () => {
    const addressesOf = async (text: string, language = pageLanguages[0]) => {
      const page = await pageOf({ order_id: text, order_note: text }, text, language);
      const addresses = [...page.matchAll(/ (?:href|action)="([^"]*)"/g)].map(([, address]) =>
        unescaped(address ?? '').replace(/^data:image\/svg\+xml,.*$/, 'data:image/svg+xml'),
      );
      const [back = '', ...furtherLinks] = addresses.toSorted(
        (a, b) => Number(b.includes('?cart')) - Number(a.includes('?cart')),
      );
      return { back, furtherLinks };
    };
    const expected = await addressesOf('x');
    for (const [index, text] of texts.entries()) {
      const { back, furtherLinks } = await addressesOf(text, pageLanguages[index % pageLanguages.length]);
      const { origin, searchParams } = new URL(back);
      expect([origin, searchParams.get('order_id')]).toEqual(['https://shop.example.com', text.toWellFormed()]);
      expect(furtherLinks).toEqual(expected.furtherLinks);
    }
  });

  test('no return_url breaks out of its attribute', async () => {
    const skeleton = skeletonOf(await pageOf({}, 'x'));
    const suffixes = ['?a="onclick=alert(1)', "?'><script>", '#"><img>', '/<b>', '?a=&lt;&amp;order_id=9', '?{{7*7}}'];
    for (const suffix of suffixes) {
      const page = await pageOf({ return_url: `https://shop.example.com/${suffix}` }, 'x');
      expect(skeletonOf(page), suffix).toEqual(skeleton);
    }
  });
});

test('no name changes the structure of the icon', async () => {
  const skeletonOfIcon = async (name: string) => {
    const page = await paymentPage(fixed, { order: orderWith({}), merchant: merchantNamed(name) }, 'en');
    const [, svg = ''] = /<link rel="icon" href="data:image\/svg\+xml,([^"]*)">/.exec(page) ?? [];
    return skeletonOf(decodeURIComponent(svg));
  };
  for (const text of texts) expect(await skeletonOfIcon(text)).toEqual(await skeletonOfIcon('x'));
});

test('no text of a brand changes the structure of the page', async () => {
  const skeletonOfBrand = async (text: string) => {
    const links = { support_email: text, support_url: text, terms_url: text, privacy_url: text };
    const brand = { ...noBrand, ...links, payment_instructions: text };
    return skeletonOf(
      await paymentPage(fixed, { order: orderWith({}), merchant: { ...merchantNamed('x'), brand } }, 'en'),
    );
  };
  for (const text of texts) expect(await skeletonOfBrand(text)).toEqual(await skeletonOfBrand('x'));
});

test('the JSON contains every text unchanged', () => {
  for (const text of texts) {
    const order = orderWith({ order_id: text, order_note: text });
    const json = paymentJson(fixed, { order, merchant: merchantNamed(text) });
    expect(JSON.parse(json)).toMatchObject({ merchant_name: text, order_id: text, order_note: text });
  }
});
