import { orderCurrencyCodes } from '../money/currency.ts';
import { type OrderFieldName, serviceTypes } from './order-fields.ts';

/** The error codes of an invalid field. */
export const fieldErrorCodes = [
  'missing',
  'wrong_type',
  'blank',
  'too_long',
  'too_short',
  'not_allowed',
  'bad_format',
  'bad_characters',
  'too_precise',
  'out_of_range',
  'unknown_field',
] as const;

/** One of {@link fieldErrorCodes}. */
export type FieldErrorCode = (typeof fieldErrorCodes)[number];

/** One invalid field of an order, or parameter of a request. The message states the rule and never repeats the value. */
export interface FieldError<Name extends string = OrderFieldName> {
  readonly field: Name;
  readonly code: FieldErrorCode;
  readonly message: string;
}

/** The rule that a value breaks. */
export type BrokenRule = Omit<FieldError, 'field'>;

/** The rule of a text field. Lengths are counted in Unicode code points. */
export interface TextRule {
  readonly kind: 'text';
  /** An optional field may be absent, null or empty. */
  readonly required: boolean;
  readonly lengthMin: number;
  readonly lengthMax: number;
  /** Whether line breaks and tabs are allowed; all other control characters never are. */
  readonly multiline?: true;
  /** Matches a text of allowed characters only. */
  readonly characters?: { readonly pattern: RegExp; readonly message: string };
  /** Checks the format. `pattern` is the published part of the check; `matches` may check more. */
  readonly format?: {
    readonly pattern: RegExp;
    readonly matches: (value: string) => boolean;
    readonly message: string;
  };
}

/** The rule of any field. The limits of an amount are in money.ts. */
export type FieldRule =
  | TextRule
  | { readonly kind: 'choice'; readonly values: readonly string[]; readonly message: string }
  | { readonly kind: 'amount' };

function text(lengthMax: number, more: Partial<TextRule> = {}): TextRule {
  return { kind: 'text', required: true, lengthMin: 1, lengthMax, ...more };
}

function patternFormat(pattern: RegExp, message: string): NonNullable<TextRule['format']> {
  return { pattern, message, matches: (value) => pattern.test(value) };
}

/**
 * An absolute http or https URL. Backslashes, white space and a user part are not allowed, because URL parsers disagree about
 * them, which attackers use to redirect to another host.
 */
const returnUrlForm = /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\/?#@]+(?:[/?#][^\s\\]*)?$/;

/** A `langtag` of RFC 5646, 2.1 (language, script, region, variants, extensions and private use), or none. */
const languageTag =
  /^(?:(?:[A-Za-z]{2,3}(?:-[A-Za-z]{3}){0,3}|[A-Za-z]{4,8})(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?(?:-(?:[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(?:-[0-9A-WY-Za-wy-z](?:-[A-Za-z0-9]{2,8})+)*(?:-[Xx](?:-[A-Za-z0-9]{1,8})+)?)?$/;

/** Finds the character that a required text must contain. */
export const nonBlank = /\S/;

// Ranges instead of \p{Cc}: the OpenAPI document contains these patterns, and many validators compile them without the flag `u`.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finds control characters
const controls = /[\x00-\x1f\x7f-\x9f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: finds control characters
const controlsExceptLineBreaksAndTab = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/;

/** Finds a control character that the rule does not allow. */
export function forbiddenControls({ multiline }: TextRule): RegExp {
  return multiline ? controlsExceptLineBreaksAndTab : controls;
}

/** The rules of all fields, used for validation and for the generated documentation. */
export const fieldRules = {
  order_id: text(128),
  order_amount: { kind: 'amount' },
  order_currency: {
    kind: 'choice',
    values: orderCurrencyCodes,
    message: 'must be an upper-case ISO 4217 currency code that has a minor unit',
  },
  order_note: text(1_000, { multiline: true }),
  service_type: { kind: 'choice', values: serviceTypes, message: `must be ${serviceTypes.join(' or ')}` },
  customer_name: text(255),
  // 254 is the longest address that an SMTP path can carry (RFC 5321, 4.5.3.1.3, less the angle brackets).
  customer_email: text(254, {
    format: patternFormat(/^[^\s@]+@[^\s@]+$/, 'must have one @ with text on both sides and no white space'),
  }),
  customer_phone: text(32, {
    lengthMin: 4,
    characters: { pattern: /^[0-9 +\-.()/#*x]*$/, message: 'must contain only digits, spaces and + - . ( ) / # * x' },
    format: patternFormat(/^(?:[^0-9]*[0-9]){4}/, 'must have at least 4 digits'),
  }),
  customer_address_line1: text(255),
  customer_address_line2: text(255, { required: false }),
  customer_address_city: text(100),
  customer_address_state: text(100),
  customer_address_country: text(100),
  customer_address_postal_code: text(20),
  order_checksum: text(256, {
    characters: { pattern: /^[\x20-\x7e]*$/, message: 'must contain only printable ASCII characters' },
  }),
  return_url: text(2_048, {
    format: {
      pattern: returnUrlForm,
      matches: (value) => returnUrlForm.test(value) && URL.canParse(value),
      message: 'must be an absolute http or https URL without user, password, backslash or white space',
    },
  }),
  // RFC 5646, 4.4.1 recommends room for 35 characters.
  customer_locale: text(35, {
    required: false,
    format: patternFormat(languageTag, 'must be a well-formed language tag (BCP 47), such as de or pt-BR'),
  }),
} as const satisfies Record<OrderFieldName, FieldRule>;

/** The first part of the rule that a text breaks, or `undefined`. The text is neither trimmed nor normalised before. */
export function textError(rule: TextRule, value: string): BrokenRule | undefined {
  if (value === '' && !rule.required) return undefined;
  if (!isPlain(value)) {
    if (!value.isWellFormed()) return { code: 'bad_characters', message: 'must be well-formed Unicode' };
    if (forbiddenControls(rule).test(value))
      return { code: 'bad_characters', message: 'must not contain control characters' };
    if (rule.required && !nonBlank.test(value))
      return { code: 'blank', message: 'must contain a character that is not white space' };
  }
  const length = codePointCount(value);
  if (length > rule.lengthMax) return { code: 'too_long', message: `must be at most ${rule.lengthMax} characters` };
  if (length < rule.lengthMin) return { code: 'too_short', message: `must be at least ${rule.lengthMin} characters` };
  if (rule.characters?.pattern.test(value) === false)
    return { code: 'bad_characters', message: rule.characters.message };
  if (rule.format?.matches(value) === false) return { code: 'bad_format', message: rule.format.message };
  return undefined;
}

/** Whether a text is printable ASCII and not only spaces. Most are, and need no further character checks. */
function isPlain(value: string): boolean {
  let isBlank = true;
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index);
    if (unit < 0x20 || unit > 0x7e) return false;
    if (unit !== 0x20) isBlank = false;
  }
  return !isBlank;
}

/** The length in Unicode code points: UTF-16 units less one for each surrogate pair of a well-formed text. */
function codePointCount(value: string): number {
  let count = value.length;
  for (let index = 0; index < value.length; index += 1) {
    if ((value.charCodeAt(index) & 0xfc00) === 0xd800) count -= 1;
  }
  return count;
}
