import { pageTexts } from '@order-gateway/pages/localization';
import { expect, test } from 'vitest';
import texts from './console-texts.json' with { type: 'json' };
import { languageFor, textsIn } from './layout.ts';

test.each([
  ['de-CH,en;q=0.5', 'de'],
  ['pl,de;q=0.5', 'de'],
  ['pl', 'en'],
  ['*', 'en'],
  [undefined, 'en'],
])('a browser with Accept-Language %s gets the console in %s', (header, language) => {
  expect(languageFor(header)).toBe(language);
});

test('each language is one of the payment page, and its texts have the placeholders of the English ones', () => {
  const english = new Map(Object.entries(texts.en));
  const placeholdersOf = (text: string | undefined) => text?.match(/\{\w+\}/g)?.toSorted();
  for (const [language, translated] of Object.entries(texts)) {
    expect(Object.keys(pageTexts)).toContain(language);
    for (const [name, text] of Object.entries(translated)) {
      expect([...english.keys()]).toContain(name);
      expect(placeholdersOf(text), `${language} ${name}`).toEqual(placeholdersOf(english.get(name)));
    }
  }
});

test('a page in another language has every text', () => {
  expect(Object.keys(textsIn('de')).toSorted()).toEqual(Object.keys(texts.en).toSorted());
  expect(textsIn('de').orders).toBe('Bestellungen');
});
