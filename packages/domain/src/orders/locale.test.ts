import { expect, test } from 'vitest';
import { canonicalLocale } from './locale.ts';

test.each([
  ['', ''],
  ['DE-ch', 'de-CH'],
  ['pt_BR', 'pt-BR'],
  ['ZH_hans_cn', 'zh-Hans-CN'],
  ['es-419', 'es-419'],
  ['sl-Rozaj', 'sl-rozaj'],
  ['de-U-co-PHONEBK', 'de-u-co-phonebk'],
  ['de-Latf-x-AB-Test', 'de-Latf-x-ab-test'],
  ['zh-CMN-hans', 'zh-cmn-Hans'],
  ['de-1996', 'de-1996'],
])('the canonical form of %j is %j', (tag, canonical) => {
  expect(canonicalLocale(tag)).toBe(canonical);
  expect(canonicalLocale(canonical)).toBe(canonical);
});
