import { minorUnitOf } from '@gateway/domain/currency';
import { type AmountHundredths, amountDecimals, formatAmount } from '@gateway/domain/money';
import texts from './payment-page-texts.json' with { type: 'json' };

export type PageLanguage = keyof typeof texts;

/** The texts of a page: labels and complete sentences. One placeholder, such as `{merchant}`, is replaced by the value. */
export type PageTexts = (typeof texts)['en'];

export const pageTexts: Readonly<Record<PageLanguage, PageTexts>> = texts;

/** All languages. The first is the default. */
export const pageLanguages = Object.keys(texts) as [PageLanguage, ...PageLanguage[]];

// Creating a formatter takes longer than rendering the page. There are at most 8 languages times 165 currencies.
const amountFormats = new Map<string, Intl.NumberFormat>();
const timeFormats = new Map<PageLanguage, Intl.DateTimeFormat>();

/**
 * Formats an amount in a language, with the decimals of ISO 4217: `Intl` differs from it for 17 currencies. The digits are
 * passed as text, so no float is involved.
 */
export function localAmount(amount: AmountHundredths, currency: string, language: PageLanguage): string {
  const digits = minorUnitOf(currency) ?? amountDecimals;
  const format = amountFormats.getOrInsertComputed(
    `${language} ${currency}`,
    () =>
      new Intl.NumberFormat(language, {
        style: 'currency',
        currency,
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      }),
  );
  const parts = format.formatToParts(formatAmount(amount) as Intl.StringNumericLiteral);
  const isRightToLeft = directionOf(language) === 'rtl';
  // Without its own direction, Arabic shows `US$` as `$US`. U+2068 and U+2069 isolate it, also in the title of the page.
  return parts
    .map(({ type, value }) => (isRightToLeft && type === 'currency' ? `\u2068${value}\u2069` : value))
    .join('');
}

/** The direction in which a language is written. */
export function directionOf(language: string): 'ltr' | 'rtl' {
  return new Intl.Locale(language).getTextInfo().direction ?? 'ltr';
}

/** Formats a time in a language, in UTC and labelled so: the server does not know the customer's time zone. */
export function localTime(atMs: number, language: PageLanguage): string {
  const format = timeFormats.getOrInsertComputed(
    language,
    () => new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }),
  );
  return `${format.format(atMs)} UTC`;
}
