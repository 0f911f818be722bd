import { pageTexts } from '@order-gateway/pages/localization';
import { expect, test } from 'vitest';
import texts from './console-texts.json' with { type: 'json' };
import { filledTitle, languageFor, textsIn } from './layout.ts';

test.each([
  ['de-CH,en;q=0.5', 'de'],
  ['pl,de;q=0.5', 'de'],
  ['es-MX,es;q=0.9,en;q=0.8', 'es'],
  ['pt-BR', 'pt'],
  ['ar-EG', 'ar'],
  ['pl', 'en'],
  ['*', 'en'],
  [undefined, 'en'],
])('a browser with Accept-Language %s gets the console in %s', (header, language) => {
  expect(languageFor(header)).toBe(language);
});

test('each language is one of the payment page, and has all texts with the placeholders of the English ones', () => {
  const english = new Map(Object.entries(texts.en));
  const placeholdersOf = (text: string | undefined) => text?.match(/\{\w+\}/g)?.toSorted();
  for (const [language, translated] of Object.entries(texts)) {
    expect(Object.keys(pageTexts)).toContain(language);
    expect(Object.keys(translated), language).toEqual([...english.keys()]);
    for (const [name, text] of Object.entries(translated)) {
      expect(text, `${language} ${name}`).not.toBe('');
      expect(placeholdersOf(text), `${language} ${name}`).toEqual(placeholdersOf(english.get(name)));
    }
  }
});

test('a page in another language has its texts', () => {
  expect(textsIn('de').orders).toBe('Bestellungen');
});

test('the direction of an ID is isolated in a title that is written from right to left', () => {
  const values = { order: '2026-1001' };
  expect(filledTitle('Cancel order {order}?', values, 'en')).toBe('Cancel order 2026-1001?');
  expect(filledTitle('إلغاء الطلب {order}؟', values, 'ar')).toBe('إلغاء الطلب \u20682026-1001\u2069؟');
});
