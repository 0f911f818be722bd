import { orderCurrencyCodes } from '../money/currency.ts';
import { emailRule, type FieldRule, textRule, urlRule } from '../requests/field-rules.ts';
import { type OrderFieldName, serviceTypes } from './order-fields.ts';

/**
 * A `langtag` of RFC 5646, 2.1 (language, script, region, variants, extensions and private use), or an empty text. The
 * format check first replaces each `_` with `-`.
 */
const languageTag =
  /^(?:(?:[A-Za-z]{2,3}(?:-[A-Za-z]{3}){0,3}|[A-Za-z]{4,8})(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?(?:-(?:[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(?:-[0-9A-WY-Za-wy-z](?:-[A-Za-z0-9]{2,8})+)*(?:-[Xx](?:-[A-Za-z0-9]{1,8})+)?)?$/;

/**
 * The parts of phone numbers as people write, dial and paste them: digits, spaces and dashes of all scripts, symbols
 * such as + and #, the direction marks that phones add to a copied number, and the word for an extension.
 */
const phonePart = /[\p{Nd}\p{Zs}\p{Pd}\p{Bidi_Control}+\u2212.()/#*x]|[Ee][Xx][Tt]/uy;

function firstForbiddenInPhone(value: string): number {
  phonePart.lastIndex = 0;
  let end = 0;
  while (end < value.length && phonePart.test(value)) end = phonePart.lastIndex;
  return end < value.length ? end : -1;
}

/** The rules for all fields, used for validation and for the generated documentation. */
export const fieldRules = {
  order_id: textRule(128),
  order_amount: { kind: 'amount' },
  order_currency: {
    kind: 'choice',
    values: orderCurrencyCodes,
    message: 'must be an upper-case ISO 4217 currency code that has a minor unit',
  },
  order_note: textRule(1_000, { multiline: true }),
  service_type: { kind: 'choice', values: serviceTypes, message: `must be ${serviceTypes.join(' or ')}` },
  customer_name: textRule(255),
  customer_email: emailRule,
  customer_phone: textRule(32, {
    lengthMin: 4,
    characters: {
      // The ASCII characters of the rule, and all characters outside printable ASCII.
      pattern: /^(?:[^ -~]|[0-9 +\-.()/#*x]|[Ee][Xx][Tt])*$/,
      firstForbidden: firstForbiddenInPhone,
      message: 'must contain only digits, spaces, dashes, + . ( ) / # * x and the word ext',
    },
    format: {
      pattern: /^(?:[ -/:-~]*[^ -/:-~]){4}/,
      matches: (value) => /^(?:\P{Nd}*\p{Nd}){4}/u.test(value),
      message: 'must have at least 4 digits',
    },
  }),
  customer_address_line1: textRule(255),
  customer_address_line2: textRule(255, { required: false }),
  customer_address_city: textRule(100),
  customer_address_state: textRule(100),
  customer_address_country: textRule(100),
  customer_address_postal_code: textRule(20),
  order_checksum: textRule(256, {
    characters: {
      pattern: /^[\x20-\x7e]*$/,
      firstForbidden: (value) => value.search(/[^\x20-\x7e]/),
      message: 'must contain only printable ASCII characters',
    },
  }),
  return_url: urlRule,
  // RFC 5646, 4.4.1 recommends room for 35 characters.
  customer_locale: textRule(35, {
    required: false,
    format: {
      pattern: languageTag,
      matches: (value) => languageTag.test(value.replaceAll('_', '-')),
      forbidden: /[^A-Za-z0-9_-]/u,
      message: 'must be a well-formed language tag (BCP 47), such as de or pt-BR',
    },
  }),
} as const satisfies Record<OrderFieldName, FieldRule>;

/** Whether a member of a request may be null, which means the same as absent: only the order's optional texts may. */
export function mayBeNull(member: string): boolean {
  const rule: FieldRule | undefined = Object.hasOwn(fieldRules, member)
    ? fieldRules[member as OrderFieldName]
    : undefined;
  return rule?.kind === 'text' && !rule.required;
}
