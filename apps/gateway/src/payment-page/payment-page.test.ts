import { parseCheckoutTemplate } from '@gateway/domain/checkout-link';
import { orderCurrencyCodes } from '@gateway/domain/currency';
import { type MerchantId, type MerchantMode, merchantModes } from '@gateway/domain/merchant';
import { type AmountHundredths, amountHundredthsMax } from '@gateway/domain/money';
import { type Order, type OrderStatus, orderStatuses } from '@gateway/domain/order';
import type { LinkedOrder } from '@gateway/domain/order-store';
import { type BaseUrl, parseBaseUrl } from '@gateway/domain/payment-link';
import { sampleOrder } from '@gateway/domain/testing/sample-orders';
import { describe, expect, test } from 'vitest';
import { fixedDeps } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import {
  localAmount,
  localDeadline,
  localTime,
  type PageLocale,
  type PageTexts,
  pageLanguages,
  pageTexts,
} from './localization.ts';
import { negotiate } from './negotiate.ts';
import { hasPaymentForm, pagePath, paymentJson, paymentPage } from './payment-page.ts';
import { qrCodeSvg } from './qr-code.ts';

const tenAndAHalf = 1_050n as AmountHundredths;

describe('localAmount', () => {
  test.each([
    ['en', 'EUR', '€10.50'],
    ['en', 'USD', '$10.50'],
    ['en', 'KWD', 'KWD 10.500'],
    ['en', 'CLF', 'CLF 10.5000'],
    ['de', 'EUR', '10,50 €'],
    ['fr', 'EUR', '10,50 €'],
    ['hi', 'INR', '₹10.50'],
    ['ja', 'USD', '$10.50'],
    ['en-GB', 'USD', 'US$10.50'],
    ['de-CH', 'CHF', 'CHF 10.50'],
    ['de', 'CHF', '10,50 CHF'],
    ['ar-EG', 'USD', '\u200f١٠٫٥٠ \u2068US$\u2069'],
  ] as const)('in %s formats 10.50 %s as %s', (language, currency, written) => {
    expect(localAmount(tenAndAHalf, currency, language).replaceAll(/[\u00a0\u202f]/g, ' ')).toBe(written);
  });

  test('uses the decimals of ISO 4217 where Intl differs', () => {
    // Intl shows none for these two; the standard has two and three.
    expect(localAmount(tenAndAHalf, 'RSD', 'en')).toContain('10.50');
    expect(localAmount(tenAndAHalf, 'IQD', 'en')).toContain('10.500');
    expect(localAmount(1_000n as AmountHundredths, 'JPY', 'ja')).toMatch(/^\p{Sc}10$/u);
  });

  test('loses no digit of the largest amount', () => {
    expect(localAmount(amountHundredthsMax, 'USD', 'en')).toBe('$9,999,999,999,999.99');
    expect(localAmount(amountHundredthsMax, 'INR', 'hi')).toBe('₹99,99,99,99,99,999.99');
  });

  test('formats every currency in every language', () => {
    for (const language of pageLanguages) {
      for (const currency of orderCurrencyCodes) {
        const written = localAmount(1_200n as AmountHundredths, currency, language);
        expect(written, `${language} ${currency}`).toMatch(/\p{Nd}{2}/u);
      }
    }
  });
});

test('localTime formats a time in the language and in UTC', () => {
  const at = Date.UTC(2026, 10, 20, 21, 1);
  expect(localTime(at, 'en')).toMatch(/^November 20, 2026 at 9:01\sPM UTC$/);
  expect(localTime(at, 'de')).toBe('20. November 2026 um 21:01 UTC');
  for (const language of pageLanguages) expect(localTime(at, language)).toMatch(/ UTC$/);
});

const minute = 60_000;
const hour = 60 * minute;

describe('localDeadline', () => {
  const nowMs = Date.UTC(2026, 10, 20, 20, 25);
  const deadlineIn = (ms: number, locale: PageLocale) => {
    const { duration, time } = localDeadline(nowMs + ms, nowMs, locale);
    return `${duration} | ${time}`.replaceAll(/[\u00a0\u202f]/g, ' ');
  };

  test.each([
    [9.9 * minute, '9 minutes | 8:34 PM'],
    [-1, '1 second | 8:24 PM'],
    [59_999, '59 seconds | 8:25 PM'],
    [minute, '1 minute | 8:26 PM'],
    [2 * hour, '2 hours | 10:25 PM'],
    [12 * hour - 1, '11 hours, 59 minutes | 8:24 AM'],
    [12 * hour, '12 hours | Nov 21, 2026, 8:25 AM'],
    [12.5 * hour, '12 hours | Nov 21, 2026, 8:55 AM'],
    [47.9 * hour, '47 hours | Nov 22, 2026, 8:19 PM'],
    [50.5 * hour, '2 days | Nov 22, 2026, 10:55 PM'],
    [366 * 24 * hour, '366 days | Nov 21, 2027, 8:25 PM'],
  ])('%d ms ahead is written as %s', (ms, written) => {
    expect(deadlineIn(ms, 'en')).toBe(written);
  });

  test.each([
    ['en-GB', '1 hour, 20 minutes | 21:45'],
    ['en-IN', '1 hour, 20 minutes | 9:45 pm'],
    ['de-CH', '1 Stunde, 20 Minuten | 21:45'],
    ['fr', '1 heure et 20 minutes | 21:45'],
    ['ar-EG', 'ساعة و٢٠ دقيقة | ٩:٤٥ م'],
    ['ja', '1 時間 20 分 | 21:45'],
  ] as const)('follows the region: %s', (locale, written) => {
    expect(deadlineIn(80 * minute, locale)).toBe(written);
  });
});

test.each([
  ['en', 'Pay within <bdi>9 minutes</bdi> (until <bdi><time>2:22 PM</time></bdi>, UTC)'],
  ['en-GB', 'Pay within <bdi>9 minutes</bdi> (until <bdi><time>14:22</time></bdi>, UTC)'],
  ['de', 'Noch <bdi>9 Minuten</bdi> zahlbar (bis <bdi><time>14:22</time></bdi>, UTC)'],
] as const)('the page in %s says how long an order can be paid', async (locale, sentence) => {
  const { order, merchant } = linkTo('UN_PAID', 'live');
  const page = await paymentPage(deps, { order: { ...order, expiresAtMs: deps.now() + 560_000 }, merchant }, locale);
  expect(page.replaceAll(/ datetime="[^"]*"/g, '').replaceAll('\u202f', ' ')).toContain(`<p>${sentence}</p>`);
});

describe('negotiate', () => {
  test.each([
    [undefined, 'html'],
    ['', 'html'],
    ['*/*', 'html'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'html'],
    ['application/json', 'json'],
    ['application/json, text/plain, */*', 'json'],
    ['text/html;q=0.5, application/json', 'json'],
    ['application/json;q=0, */*', 'html'],
    ['image/png', 'html'],
    [';;;,,,=q', 'html'],
  ])('Accept: %s gives %s', (accept, format) => {
    expect(negotiate({ accept }).format).toBe(format);
  });

  test.each([
    [undefined, 'en'],
    ['*', 'en'],
    ['de', 'de'],
    ['de-CH', 'de-CH'],
    ['DE-ch', 'de-CH'],
    ['de-LI, de-CH;q=0.9', 'de'],
    ['de, en-GB;q=0.9', 'de'],
    ['de, de-CH;q=0.9', 'de-CH'],
    ['en-US,en-GB;q=0.9,en;q=0.8', 'en'],
    ['en-ZZ', 'en'],
    ['pt-BR,pt;q=0.9,en;q=0.8', 'pt'],
    ['es-419', 'es-419'],
    ['zh-CN,zh;q=0.9,ja;q=0.5,en;q=0.4', 'zh'],
    ['en;q=0.2, ar-EG;q=0.9', 'ar-EG'],
    ['sv, fi', 'en'],
    ['nl-BE', 'nl-BE'],
    ['fr;q=0, *', 'en'],
    ['__proto__', 'en'],
    ['a'.repeat(10_000), 'en'],
  ])('Accept-Language: %s gives %s', (acceptLanguage, locale) => {
    expect(negotiate({ 'accept-language': acceptLanguage }).locale).toBe(locale);
  });

  test.each([
    [{ lang: 'de' }, 'fr', 'de', 'de'],
    [{ lang: 'de' }, 'fr, de-CH;q=0.5', 'de-CH', 'de'],
    [{ lang: 'tlh' }, 'fr', 'fr', undefined],
    [{ lang: ['de', 'es'] }, 'fr', 'fr', undefined],
    [{ lang: '__proto__' }, undefined, 'en', undefined],
    [null, 'fr', 'fr', undefined],
  ])('the query %j with Accept-Language: %s gives %s', (query, acceptLanguage, locale, chosen) => {
    expect(negotiate({ 'accept-language': acceptLanguage }, query)).toMatchObject({ locale, chosen });
  });

  test('reads only the start of a long header, and no entry in part', () => {
    const filler = 'xx,'.repeat(1_000);
    expect(negotiate({ 'accept-language': `de,${filler}` }).locale).toBe('de');
    expect(negotiate({ 'accept-language': `${filler}de` }).locale).toBe('en');
    expect(negotiate({ accept: `${filler}application/json` }).format).toBe('html');
    // A cut in the middle would leave `de` and `application/json`.
    expect(negotiate({ 'accept-language': `de${'-x'.repeat(1_000)}` }).locale).toBe('en');
    expect(negotiate({ accept: `application/json${'x'.repeat(1_100)}` }).format).toBe('html');
  });
});

const deps = {
  ...fixedDeps(createMemoryLogger().logger),
  baseUrl: () => parseBaseUrl('https://pay.test/eu') as BaseUrl,
};
const withCheckout = { ...deps, checkoutTemplate: parseCheckoutTemplate('https://checkout.test/{order_token}') };

const expiresAtMs = Date.UTC(2026, 11, 1, 12);
const paidAtMs = Date.UTC(2026, 10, 30, 8, 30);
const cancelledAtMs = Date.UTC(2026, 10, 29, 9);

/** What the page of each state shows: the names of its texts, and its time. */
const shownFor: Record<OrderStatus, { state: Partial<Order>; texts: (keyof PageTexts)[]; time: string }> = {
  UN_PAID: { state: {}, texts: [], time: '2026-12-01T12:00:00.000+00:00' },
  PAID: {
    state: { payment: { checkoutId: null, paymentId: 'pay-1', paidAtMs } },
    ...{ texts: ['paid', 'paidOn', 'paidText', 'paymentId'], time: '2026-11-30T08:30:00.000+00:00' },
  },
  EXPIRED: {
    state: {},
    ...{ texts: ['expired', 'expiredOn', 'expiredText'], time: '2026-12-01T12:00:00.000+00:00' },
  },
  CANCELLED: {
    state: { cancelledAtMs },
    ...{ texts: ['cancelled', 'cancelledOn', 'cancelledText'], time: '2026-11-29T09:00:00.000+00:00' },
  },
};

function linkTo(orderStatus: OrderStatus, mode: MerchantMode): LinkedOrder {
  const order = { ...sampleOrder(1 as MerchantId), expiresAtMs, ...shownFor[orderStatus].state, orderStatus };
  return { order, merchant: { name: 'Shop', mode, isDisabled: false, signingSecret: null } };
}

const cases = pageLanguages.flatMap((language) =>
  merchantModes.flatMap((mode) => orderStatuses.map((status) => [status, mode, language] as const)),
);

describe.each(cases)('the page of an order that is %s, %s, in %s', (status, mode, language) => {
  const link = linkTo(status, mode);
  const { orderToken } = link.order;
  const texts = pageTexts[language];

  test('shows the state with its time', async () => {
    const page = await paymentPage(deps, link, language);
    const { texts: shown, time } = shownFor[status];
    for (const name of shown) expect(page).toContain(texts[name].replace('{merchant}', '<bdi>Shop</bdi>'));
    const times = [...page.matchAll(/ datetime="([^"]+)"/g)].map(([, at]) => at);
    expect(times).toEqual([time]);
    expect(page.includes('<bdi>pay-1</bdi>')).toBe(status === 'PAID');
    expect(page.includes(texts.testMode)).toBe(mode === 'test');
    expect(page).not.toContain(texts.declined);
    expect(await paymentPage(deps, link, language, 'declined')).toContain(texts.declined);
  });

  test('has a Pay button with the amount only while the order can be paid', async () => {
    for (const at of [deps, withCheckout]) {
      const page = await paymentPage(at, link, language);
      const isOpen = status === 'UN_PAID';
      const hasCheckout = isOpen && at === withCheckout;
      const hasForm = isOpen && mode === 'test';
      expect(page.includes(`>${texts.pay}</`)).toBe(hasCheckout || hasForm);
      expect(page.includes(texts.simulate)).toBe(hasCheckout && hasForm);
      expect(page.includes('https://checkout.test/')).toBe(hasCheckout);
      expect(hasPaymentForm(link)).toBe(hasForm);
      expect(page.includes(orderToken)).toBe(hasCheckout || hasForm);
      expect([...page.matchAll(/<form[^>]*>|<button[^>]*>/g)].map(([tag]) => tag)).toEqual(
        hasForm
          ? [
              `<form class="actions" method="post" action="/eu/payment/${orderToken}/simulate">`,
              `<button class="button${hasCheckout ? '' : ' main'}" name="outcome" value="pay">`,
              '<button class="button" name="outcome" value="decline">',
            ]
          : [],
      );
      expect(page.includes(texts.notPayableHere.replace('{merchant}', '<bdi>Shop</bdi>'))).toBe(
        isOpen && !hasCheckout && !hasForm,
      );
      const qrCode = qrCodeSvg(`https://pay.test/eu/payment/${orderToken}`);
      expect([page.includes(qrCode), page.includes(texts.scan)]).toEqual(
        hasCheckout || hasForm ? [true, true] : [false, false],
      );
      expect([...page.matchAll(/class="button main"/g)]).toHaveLength(isOpen && (hasCheckout || hasForm) ? 1 : 0);
    }
  });

  test('names the merchant first, the amount once, and what leads back last', async () => {
    const page = await paymentPage(withCheckout, link, language);
    const title = texts.title.replace('{merchant}', 'Shop');
    expect(page).toContain(
      `<meta property="og:title" content="${title}">\n<meta property="og:site_name" content="Shop">`,
    );
    expect(page).toContain(`<title>${status === 'UN_PAID' ? title : ''}`);
    const amount = localAmount(link.order.fields.order_amount, 'EUR', language);
    const shown = ['<h1><bdi>Shop</bdi></h1>', amount, link.order.fields.order_note, 'class="actions"', 'class="back"'];
    expect(shown.map((part) => page.split(part).length)).toEqual([2, 2, 2, expect.toBeOneOf([2, 3]), 2]);
    expect(shown.map((part) => page.indexOf(part))).toEqual(
      shown.map((part) => page.indexOf(part)).toSorted((a, b) => a - b),
    );
    expect(page).toContain(texts.back.replace('{host}', '<bdi>shop.example.com</bdi>'));
  });
});

test('the page leads to itself in every language, and its form keeps the chosen one', async () => {
  const linksOf = (page: string) => [...page.matchAll(/<a href="([^"]*)" lang="([^"]*)"( aria-current="true")?>/g)];
  const link = linkTo('UN_PAID', 'test');
  const page = await paymentPage(deps, link, 'de-CH');
  expect(linksOf(page).map(([, href, lang, current]) => [href, lang, current !== undefined])).toEqual(
    pageLanguages.map((language) => [`?lang=${language}`, language, language === 'de']),
  );
  expect(page).toContain('/simulate">');
  const path = pagePath(deps, link);
  const declined = await paymentPage(deps, link, 'de', 'declined', { path, chosen: 'de' });
  expect(linksOf(declined)[0]?.[1]).toBe(`/eu/payment/${link.order.orderToken}?lang=en`);
  expect(declined).toContain(`action="${path}/simulate?lang=de"`);
});

test.each([
  ['Blue Bottle Roasters', 'B'],
  ['éclair', 'É'],
  ['"7 Days"', '7'],
  ['喫茶店', '喫'],
  ['مقهى', 'م'],
  ['🥐🥐', '🥐'],
])('the monogram of %s is %s', async (name, monogram) => {
  const { order, merchant } = linkTo('UN_PAID', 'live');
  const page = await paymentPage(deps, { order, merchant: { ...merchant, name } }, 'en');
  expect(page).toContain(`<span class="monogram" aria-hidden="true">${monogram}</span>`);
});

describe('a note', () => {
  const pageWith = (order_note: string) => {
    const { order, merchant } = linkTo('UN_PAID', 'live');
    return paymentPage(deps, { order: { ...order, fields: { ...order.fields, order_note } }, merchant }, 'en');
  };

  test.each(['x', 'x'.repeat(60), 'two\nlines'])('that is short is shown as it is: %j', async (note) => {
    const page = await pageWith(note);
    expect(page).toContain(`<bdi class="note">${note}</bdi>`);
    expect(page).not.toContain('class="beginning"');
  });

  test.each([
    ['x'.repeat(61), 'x'.repeat(60)],
    ['a\n\tb \n c', 'a b c'],
    // A family of 8 code units, which is shown whole or not at all.
    ['x'.repeat(55) + '👨‍👩‍👧'.repeat(2), 'x'.repeat(55)],
    [`x\u0301${'\u0301'.repeat(90)}`, ''],
  ])('that is long folds behind its beginning: %j', async (note, beginning) => {
    const page = await pageWith(note);
    expect(page).toContain(`<bdi class="beginning">${beginning}…</bdi>`);
    expect(page).toContain(`<p class="note"><bdi>${note}</bdi></p>`);
  });
});

test.each(pageLanguages)('the page in %s says that a payment is in progress, and offers none', async (language) => {
  const texts = pageTexts[language];
  for (const mode of merchantModes) {
    const link = linkTo('UN_PAID', mode);
    const lease = { checkoutId: 2 as MerchantId, attemptId: 'a-1', endsAtMs: expiresAtMs, isLive: true };
    const inProgress = { ...link, order: { ...link.order, lease } };
    const page = await paymentPage(withCheckout, inProgress, language);
    expect(page).toContain(texts.inProgressText);
    expect(page).not.toMatch(/<form|<button|checkout\.test/);
    expect(JSON.parse(paymentJson(withCheckout, inProgress))).toMatchObject({
      checkout_url: null,
      payment_in_progress_until: '2026-12-01T12:00:00.000+00:00',
    });
    const ended = { ...link, order: { ...link.order, lease: { ...lease, isLive: false } } };
    expect(await paymentPage(withCheckout, ended, language)).toBe(await paymentPage(withCheckout, link, language));
  }
});

test.each(orderStatuses)(
  'the JSON of an order that is %s has the times that it has, and where it is paid',
  (status) => {
    const parsed = (mode: MerchantMode) => JSON.parse(paymentJson(withCheckout, linkTo(status, mode)));
    const times = {
      order_expires_at: '2026-12-01T12:00:00.000+00:00',
      paid_at: status === 'PAID' ? '2026-11-30T08:30:00.000+00:00' : undefined,
      payment_id: status === 'PAID' ? 'pay-1' : undefined,
      cancelled_at: status === 'CANCELLED' ? '2026-11-29T09:00:00.000+00:00' : undefined,
    };
    const checkoutUrl = status === 'UN_PAID' ? expect.stringMatching(/^https:\/\/checkout\.test\/\w{32}$/) : null;
    expect(parsed('live')).toMatchObject({ mode: 'live', order_status: status, checkout_url: checkoutUrl });
    expect(parsed('test')).toMatchObject({ mode: 'test', order_status: status, checkout_url: checkoutUrl });
    expect(parsed('live')).toEqual(expect.objectContaining(JSON.parse(JSON.stringify(times))));
  },
);

test('every language translates every text, with the same placeholders', () => {
  const placeholdersOf = (text: string | undefined) => text?.match(/\{\w+\}/g);
  for (const language of pageLanguages) {
    expect(Object.keys(pageTexts[language])).toEqual(Object.keys(pageTexts.en));
    for (const [name, text] of Object.entries(pageTexts[language])) {
      expect(text.trim(), `${language} ${name}`).not.toBe('');
      expect(placeholdersOf(text)).toEqual(placeholdersOf(new Map(Object.entries(pageTexts.en)).get(name)));
      if (language === 'en') continue;
      expect(Object.values(pageTexts.en), `${language} ${name}`).not.toContain(text);
    }
  }
});
