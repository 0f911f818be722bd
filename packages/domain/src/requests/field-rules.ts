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
export interface FieldError<Name extends string = string> {
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

/** The rule of a required text. */
export function textRule(lengthMax: number, others: Partial<TextRule> = {}): TextRule {
  return { kind: 'text', required: true, lengthMin: 1, lengthMax, ...others };
}

/** A format that a pattern describes completely. */
export function patternFormat(pattern: RegExp, message: string): NonNullable<TextRule['format']> {
  return { pattern, message, matches: (value) => pattern.test(value) };
}

/**
 * An absolute http or https URL. Backslashes, white space and a user part are not allowed, because URL parsers disagree about
 * them, which attackers use to redirect to another host.
 */
const urlForm = /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\/?#@]+(?:[/?#][^\s\\]*)?$/;

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

/** The rule of a name of a person or a merchant. */
export const nameRule = textRule(255);

/** The rule of an e-mail address. 254 characters are the longest that an SMTP path can carry (RFC 5321, 4.5.3.1.3, less the angle brackets). */
export const emailRule = textRule(254, {
  format: patternFormat(/^[^\s@]+@[^\s@]+$/, 'must have one @ with text on both sides and no white space'),
});

/** The rule of an http or https URL. */
export const urlRule = textRule(2_048, {
  format: {
    pattern: urlForm,
    matches: (value) => urlForm.test(value) && URL.canParse(value),
    message: 'must be an absolute http or https URL without user, password, backslash or white space',
  },
});

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
