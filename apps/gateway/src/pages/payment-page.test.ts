import { orderCurrencyCodes } from '@gateway/domain/currency';
import { type AmountHundredths, amountHundredthsMax } from '@gateway/domain/money';
import { describe, expect, test } from 'vitest';
import { localAmount, localTime, pageLanguages, pageTexts } from './localization.ts';
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
    ['de-CH', 'de'],
    ['pt-BR,pt;q=0.9,en;q=0.8', 'pt'],
    ['es-419', 'es'],
    ['zh-CN,zh;q=0.9,ja;q=0.5,en;q=0.4', 'ja'],
    ['en;q=0.2, ar-EG;q=0.9', 'ar'],
    ['nl, sv', 'en'],
    ['fr;q=0, *', 'en'],
    ['__proto__', 'en'],
    ['a'.repeat(10_000), 'en'],
  ])('Accept-Language: %s gives %s', (acceptLanguage, language) => {
    expect(negotiate({ 'accept-language': acceptLanguage }).language).toBe(language);
  });

  test('reads only the start of a long header, and no entry in part', () => {
    const filler = 'xx,'.repeat(1_000);
    expect(negotiate({ 'accept-language': `de,${filler}` }).language).toBe('de');
    expect(negotiate({ 'accept-language': `${filler}de` }).language).toBe('en');
    expect(negotiate({ accept: `${filler}application/json` }).format).toBe('html');
    // A cut in the middle would leave `de` and `application/json`.
    expect(negotiate({ 'accept-language': `de${'-x'.repeat(1_000)}` }).language).toBe('en');
    expect(negotiate({ accept: `application/json${'x'.repeat(1_100)}` }).format).toBe('html');
  });
});

test('every language translates every text, and names the merchant where there is no Pay button', () => {
  for (const language of pageLanguages) {
    expect(pageTexts[language].notPayableHere.split('{merchant}')).toHaveLength(2);
    for (const [name, text] of Object.entries(pageTexts[language])) {
      expect(text.trim(), `${language} ${name}`).not.toBe('');
      // "Status" is German and English.
      if (language === 'en' || text === 'Status') continue;
      expect(Object.values(pageTexts.en), `${language} ${name}`).not.toContain(text);
    }
  }
});
