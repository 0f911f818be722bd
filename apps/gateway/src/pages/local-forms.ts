import { minorUnitOf } from '@gateway/domain/currency';
import { type AmountHundredths, amountDecimals, formatAmount } from '@gateway/domain/money';
import type { PageLanguage } from './page-texts.ts';

// Making a formatter takes longer than rendering the page. There are at most 8 languages times 165 currencies.
const amountForms = new Map<string, Intl.NumberFormat>();
const momentForms = new Map<PageLanguage, Intl.DateTimeFormat>();

/**
 * An amount as it is written in the language, with the decimals of ISO 4217: `Intl` has its own opinion for 17 currencies. The
 * digits are given as text, so that no float takes part.
 */
export function localAmount(amount: AmountHundredths, currency: string, language: PageLanguage): string {
  const key = `${language} ${currency}`;
  const form = amountForms.get(key) ?? amountForm(currency, language);
  amountForms.set(key, form);
  return form.format(formatAmount(amount) as Intl.StringNumericLiteral);
}

function amountForm(currency: string, language: PageLanguage): Intl.NumberFormat {
  const digits = minorUnitOf(currency) ?? amountDecimals;
  return new Intl.NumberFormat(language, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** A moment as it is written in the language, in UTC and saying so: the page can't know where the customer is. */
export function localMoment(atMs: number, language: PageLanguage): string {
  const form =
    momentForms.get(language) ??
    new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
  momentForms.set(language, form);
  return `${form.format(atMs)} UTC`;
}
