import { orderCurrencyCodes } from './currency.ts';
import { type OrderFieldName, serviceTypes } from './order-fields.ts';

/** The machine codes that a broken field can carry. */
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
] as const;

/** What is wrong with a field, for a program to decide on. */
export type FieldErrorCode = (typeof fieldErrorCodes)[number];

/** One broken field. The message tells the rule and never repeats the value. */
export interface FieldError {
  readonly field: OrderFieldName;
  readonly code: FieldErrorCode;
  readonly message: string;
}

/** The rule of a text field. Lengths are counted in Unicode code points. */
export interface TextRule {
  readonly kind: 'text';
  /** An optional field may be absent, null or empty. */
  readonly required: boolean;
  readonly lengthMin: number;
  readonly lengthMax: number;
  /** Whether line breaks and tabs are allowed; all other control characters never are. */
  readonly multiline?: true;
  /** The only characters allowed, as the body of a character class. */
  readonly characters?: { readonly pattern: RegExp; readonly told: string };
  /** The form of the whole text; `pattern` is the part of it that a pattern can say. */
  readonly format?: { readonly pattern: RegExp; readonly fits: (value: string) => boolean; readonly told: string };
}

/** The rule of a field that takes one of some words. */
export interface ChoiceRule {
  readonly kind: 'choice';
  readonly values: readonly string[];
  readonly told: string;
}

/** The rule of `order_amount`; money.ts holds its numbers. */
export interface AmountRule {
  readonly kind: 'amount';
}

/** The rule of any field. */
export type FieldRule = TextRule | ChoiceRule | AmountRule;

function text(lengthMax: number, more: Partial<TextRule> = {}): TextRule {
  return { kind: 'text', required: true, lengthMin: 1, lengthMax, ...more };
}

function patternFormat(pattern: RegExp, told: string): NonNullable<TextRule['format']> {
  return { pattern, told, fits: (value) => pattern.test(value) };
}

/**
 * What a browser can be sent to and nowhere else. Backslashes, white space and a user part are refused before the URL is
 * parsed, because parsers disagree about them and that is how redirects are led astray.
 */
const returnUrlForm = /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\/?#@]+(?:[/?#][^\s\\]*)?$/;

/** What a required text must hold somewhere. */
export const nonBlank = /\S/;

/** What a text of the rule must not hold anywhere. */
export function forbiddenControls({ multiline }: TextRule): RegExp {
  return multiline ? /[^\P{Cc}\n\r\t]/u : /\p{Cc}/u;
}

/** The rules of all fields: what validates, and what documentation is made from. */
export const fieldRules = {
  order_id: text(128),
  order_amount: { kind: 'amount' },
  order_currency: {
    kind: 'choice',
    values: orderCurrencyCodes,
    told: 'must be an upper-case currency code of ISO 4217 that has a minor unit',
  },
  order_note: text(1_000, { multiline: true }),
  service_type: { kind: 'choice', values: serviceTypes, told: `must be ${serviceTypes.join(' or ')}` },
  customer_name: text(255),
  // 254 is the longest address that an SMTP path can carry (RFC 5321, 4.5.3.1.3, less the angle brackets).
  customer_email: text(254, {
    format: patternFormat(/^[^\s@]+@[^\s@]+$/, 'must have one @ with something on each side and no blanks'),
  }),
  customer_phone: text(32, {
    lengthMin: 4,
    characters: { pattern: /^[0-9 +\-.()/#*x]*$/, told: 'may hold digits, blanks and + - . ( ) / # * x only' },
    format: patternFormat(/^(?:[^0-9]*[0-9]){4}/, 'must have at least 4 digits'),
  }),
  customer_address_line1: text(255),
  customer_address_line2: text(255, { required: false }),
  customer_address_city: text(100),
  customer_address_state: text(100),
  customer_address_country: text(100),
  customer_address_postal_code: text(20),
  order_checksum: text(256, {
    characters: { pattern: /^[\x20-\x7e]*$/, told: 'may hold printable ASCII characters only' },
  }),
  return_url: text(2_048, {
    format: {
      pattern: returnUrlForm,
      fits: (value) => returnUrlForm.test(value) && URL.canParse(value),
      told: 'must be an absolute http or https URL without user, password, backslash or white space',
    },
  }),
} as const satisfies Record<OrderFieldName, FieldRule>;

/**
 * The first rule that a text breaks, with a message that tells it, or `undefined`. The value is judged as it is: never trimmed,
 * never normalised.
 */
export function textFault(rule: TextRule, value: string): { code: FieldErrorCode; told: string } | undefined {
  if (value === '' && !rule.required) return undefined;
  if (!isPlain(value)) {
    if (!value.isWellFormed()) return { code: 'bad_characters', told: 'must be well-formed Unicode' };
    if (forbiddenControls(rule).test(value))
      return { code: 'bad_characters', told: 'must not hold control characters' };
    if (rule.required && !nonBlank.test(value))
      return { code: 'blank', told: 'must hold at least one non-blank character' };
  }
  const length = codePointCount(value);
  if (length > rule.lengthMax) return { code: 'too_long', told: `must be at most ${rule.lengthMax} characters` };
  if (length < rule.lengthMin) return { code: 'too_short', told: `must be at least ${rule.lengthMin} characters` };
  if (rule.characters?.pattern.test(value) === false) return { code: 'bad_characters', told: rule.characters.told };
  if (rule.format?.fits(value) === false) return { code: 'bad_format', told: rule.format.told };
  return undefined;
}

/** Whether a text is printable ASCII and not all blanks, as most are: no rule about characters has to look at such a text. */
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
