import { type AmountHundredths, amountHundredthsMax, orderCurrencyCodes } from '@order-gateway/domain/money';
import { describe, expect, test } from 'vitest';
import { localAmount, localDeadline, localTime, type PageLocale, pageLanguages } from './localization.ts';
import { negotiate } from './negotiate.ts';

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

  test('uses the decimals of ISO 4217 if Intl differs', () => {
    // Intl shows no decimals for these two currencies; the standard has two and three.
    expect(localAmount(tenAndAHalf, 'HUF', 'en')).toContain('10.50');
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

test('localTime formats a time in the language, in UTC', () => {
  const timeMs = Date.UTC(2026, 10, 20, 21, 1);
  expect(localTime(timeMs, 'en')).toMatch(/^November 20, 2026 at 9:01\sPM$/);
  expect(localTime(timeMs, 'de')).toBe('20. November 2026 um 21:01');
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
  ])('formats a deadline that is %d ms ahead as %s', (ms, written) => {
    expect(deadlineIn(ms, 'en')).toBe(written);
  });

  test.each([
    ['en-GB', '1 hour, 20 minutes | 21:45'],
    ['en-IN', '1 hour, 20 minutes | 9:45 pm'],
    ['de-CH', '1 Stunde, 20 Minuten | 21:45'],
    ['fr', '1 heure et 20 minutes | 21:45'],
    ['ar-EG', 'ساعة و٢٠ دقيقة | ٩:٤٥ م'],
    ['ja', '1 時間 20 分 | 21:45'],
  ] as const)('formats a deadline in the locale %s as %s', (locale, written) => {
    expect(deadlineIn(80 * minute, locale)).toBe(written);
  });
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
    [{ lang: 'de-CH' }, 'fr', 'de-CH', 'de-CH'],
    [{ lang: 'pt-BR' }, 'fr', 'pt', 'pt'],
    [{ lang: 'tlh' }, 'fr', 'fr', undefined],
    [{ lang: '' }, 'fr', 'fr', undefined],
    [{ lang: '*' }, 'fr', 'fr', undefined],
    [{ lang: 'de, en' }, 'fr', 'fr', undefined],
    [{ lang: ['de', 'es'] }, 'fr', 'fr', undefined],
    [{ lang: '__proto__' }, undefined, 'en', undefined],
    [null, 'fr', 'fr', undefined],
  ])('the query %j with Accept-Language: %s gives %s', (query, acceptLanguage, locale, chosen) => {
    expect(negotiate({ 'accept-language': acceptLanguage }, { query })).toMatchObject({ locale, chosen });
  });

  test.each([
    ['de', {}, 'fr', 'de'],
    ['DE-ch', {}, 'fr', 'de-CH'],
    ['zh-Hant-TW', {}, 'fr', 'zh'],
    ['pt-BR', {}, 'pt-PT', 'pt'],
    ['de', {}, 'de-CH', 'de-CH'],
    ['tlh', {}, 'fr', 'fr'],
    ['', {}, 'fr', 'fr'],
    ['tlh', {}, undefined, 'en'],
    ['de-AT', { lang: 'fr' }, 'pl', 'fr'],
    ['de-AT', { lang: 'de' }, 'de-CH', 'de-AT'],
  ])(
    'the locale %s of an order with the query %j and Accept-Language: %s gives %s',
    (customerLocale, query, acceptLanguage, locale) => {
      const headers = { 'accept-language': acceptLanguage };
      expect(negotiate(headers, { query, customerLocale }).locale).toBe(locale);
    },
  );

  test('reads only the start of a long header, and ignores an incomplete entry', () => {
    const filler = 'xx,'.repeat(1_000);
    expect(negotiate({ 'accept-language': `de,${filler}` }).locale).toBe('de');
    expect(negotiate({ 'accept-language': `${filler}de` }).locale).toBe('en');
    expect(negotiate({ accept: `${filler}application/json` }).format).toBe('html');
    // Cut in the middle, these would become `de` and `application/json`.
    expect(negotiate({ 'accept-language': `de${'-x'.repeat(1_000)}` }).locale).toBe('en');
    expect(negotiate({ accept: `application/json${'x'.repeat(1_100)}` }).format).toBe('html');
  });
});
