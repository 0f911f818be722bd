import { type AmountHundredths, amountDecimals, formatAmount, minorUnitOf } from '@order-gateway/domain/money';
import texts from './payment-page-texts.json' with { type: 'json' };

/** A language of the pages. */
export type PageLanguage = keyof typeof texts;

/** The texts of a page: labels and complete sentences. Placeholders such as `{merchant}` are replaced by values. */
export type PageTexts = (typeof texts)['en'];

/** The texts of the pages in each language. */
export const pageTexts: Readonly<Record<PageLanguage, PageTexts>> = texts;

/** All languages of the page. The first one is the default. */
export const pageLanguages = Object.keys(texts) as [PageLanguage, ...PageLanguage[]];

/**
 * The regions with their own format of amounts or times. The list is fixed, so that headers can't fill the caches of
 * formats.
 */
const regions: Readonly<Partial<Record<PageLanguage, readonly string[]>>> = {
  en: ['AU', 'CA', 'GB', 'IE', 'IN', 'NZ', 'SG', 'ZA'],
  es: ['419', 'AR', 'CL', 'CO', 'MX', 'PE', 'US'],
  fr: ['BE', 'CA', 'CH'],
  de: ['AT', 'CH'],
  pt: ['PT'],
  ar: ['AE', 'EG', 'MA', 'SA'],
  it: ['CH'],
  nl: ['BE'],
};

/**
 * A language, or a language and a region such as `en-GB`: the language selects the texts, and the region the formats.
 */
export type PageLocale = PageLanguage | `${PageLanguage}-${string}`;

/** All locales of the pages. */
export const pageLocales: readonly PageLocale[] = pageLanguages.flatMap((language) => [
  language,
  ...(regions[language] ?? []).map((region) => `${language}-${region}` as const),
]);

/** Returns the language of a locale, without its region. */
export function languageOf(locale: PageLocale): PageLanguage {
  return locale.split('-')[0] as PageLanguage;
}

// Formatters are cached, because creating one takes longer than rendering the page. There are at most 50 locales and
// 165 currencies.
const amountFormats = new Map<string, Intl.NumberFormat>();
const timeFormats = new Map<string, Intl.DateTimeFormat>();
const durationFormats = new Map<PageLocale, Intl.DurationFormat>();
// Formatting a duration takes a fifth of a page's CPU time, and most orders share a few hundred durations in days or
// minutes.
const durationTexts = new Map<string, string>();
const durationTextsMax = 10_000;
const directions = new Map<string, 'ltr' | 'rtl'>();

/**
 * Formats an amount for a locale, with the decimals of ISO 4217, from which `Intl` differs for 16 currencies. The
 * digits are passed as text, so they are not rounded to a double.
 */
export function localAmount(amount: AmountHundredths, currency: string, locale: PageLocale): string {
  const digits = minorUnitOf(currency) ?? amountDecimals;
  const format = amountFormats.getOrInsertComputed(
    `${locale} ${currency}`,
    () =>
      new Intl.NumberFormat(locale, {
        style: 'currency',
        currency,
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      }),
  );
  const parts = format.formatToParts(formatAmount(amount) as Intl.StringNumericLiteral);
  const isRightToLeft = directionOf(locale) === 'rtl';
  // Arabic text would show `US$` as `$US`. U+2068 and U+2069 isolate its direction, even in the title of the page.
  return parts
    .map(({ type, value }) => (isRightToLeft && type === 'currency' ? `\u2068${value}\u2069` : value))
    .join('');
}

/** Returns the direction in which a language is written. */
export function directionOf(language: string): 'ltr' | 'rtl' {
  return directions.getOrInsertComputed(language, () => new Intl.Locale(language).getTextInfo().direction ?? 'ltr');
}

/** Formats a time for a locale, in UTC, because the server does not know the customer's time zone. */
export function localTime(atMs: number, locale: PageLocale, dateStyle: 'medium' | 'long' = 'long'): string {
  return timeFormat(locale, dateStyle).format(atMs);
}

/** If at least this much time remains, a deadline is shown with its date. Otherwise, the time of day is unambiguous. */
const datedFromMs = 12 * 3_600_000;

/**
 * Formats the time until a deadline, rounded down, and the deadline itself, in UTC. Neither text contains a
 * preposition, because in many languages a preposition changes the words that follow it.
 */
export function localDeadline(atMs: number, nowMs: number, locale: PageLocale) {
  const dateStyle = atMs - nowMs >= datedFromMs ? ('medium' as const) : undefined;
  const duration = localDuration(atMs - nowMs, locale);
  return { duration, time: timeFormat(locale, dateStyle).format(atMs), dateStyle } as const;
}

function localDuration(ms: number, locale: PageLocale): string {
  const seconds = Math.max(1, Math.floor(ms / 1_000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const duration =
    days >= 2
      ? { days }
      : hours >= 12
        ? { hours }
        : hours > 0
          ? { hours, minutes: minutes % 60 }
          : minutes > 0
            ? { minutes }
            : { seconds };
  if (durationTexts.size > durationTextsMax) durationTexts.clear();
  return durationTexts.getOrInsertComputed(`${locale} ${JSON.stringify(duration)}`, () => {
    const format = durationFormats.getOrInsertComputed(
      locale,
      () => new Intl.DurationFormat(locale, { style: 'long' }),
    );
    return format.format(duration);
  });
}

function timeFormat(locale: PageLocale, dateStyle: 'medium' | 'long' | undefined): Intl.DateTimeFormat {
  return timeFormats.getOrInsertComputed(
    `${locale} ${dateStyle}`,
    () => new Intl.DateTimeFormat(locale, { dateStyle, timeStyle: 'short', timeZone: 'UTC' }),
  );
}
