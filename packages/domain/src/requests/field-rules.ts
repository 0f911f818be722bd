import { characterAt, invisible, invisibleRanges, isBlank, loneSurrogate } from './characters.ts';

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

/**
 * An invalid field of an order, or an invalid parameter of a request. The message states the rule. It never repeats the
 * value, except for a forbidden character.
 */
export interface FieldError<Name extends string = string> {
  readonly field: Name;
  readonly code: FieldErrorCode;
  readonly message: string;
}

/** The rule that a value breaks. */
export type BrokenRule = Omit<FieldError, 'field'>;

/** The error of a value that is not a text. */
export const notString = { code: 'wrong_type', message: 'must be a string' } as const satisfies BrokenRule;

/** The rule for a text field. Lengths are counted in Unicode code points. */
export interface TextRule {
  readonly kind: 'text';
  /** An optional field may be absent, null or empty. */
  readonly required: boolean;
  readonly lengthMin: number;
  readonly lengthMax: number;
  /** Whether line breaks and tabs are allowed; all other control characters never are. */
  readonly multiline?: true;
  /** The allowed characters. `pattern` is the published part of the rule, which every valid text matches. */
  readonly characters?: {
    readonly pattern: RegExp;
    /** The index of the first character that is not allowed; -1: none. */
    readonly firstForbidden: (value: string) => number;
    readonly message: string;
  };
  /** Checks the format. `pattern` is the published part of the check; `matches` may check more. */
  readonly format?: {
    readonly pattern: RegExp;
    readonly matches: (value: string) => boolean;
    /** Finds a character that no valid text has. */
    readonly forbidden?: RegExp;
    readonly message: string;
  };
}

/** The rule for any field. The limits of an amount are in money.ts. */
export type FieldRule =
  | TextRule
  | { readonly kind: 'choice'; readonly values: readonly string[]; readonly message: string }
  | { readonly kind: 'amount' };

/** Returns the rule for a text, which is required unless `overrides` say otherwise. */
export function textRule(lengthMax: number, overrides: Partial<TextRule> = {}): TextRule {
  return { kind: 'text', required: true, lengthMin: 1, lengthMax, ...overrides };
}

/** Returns a format that a pattern describes completely. `forbidden` finds a character that no valid text has. */
export function patternFormat(pattern: RegExp, forbidden: RegExp, message: string): NonNullable<TextRule['format']> {
  return { pattern, forbidden, message, matches: (value) => pattern.test(value) };
}

/**
 * An absolute http or https URL. Backslashes, white space and a user part are not allowed, because URL parsers disagree
 * about them, and attackers use this to redirect to another host.
 */
const urlForm = /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\/?#@]+(?:[/?#][^\s\\]*)?$/;

/** The published part of the rule that a text must not be blank. */
export const nonBlank = new RegExp(`[^${invisibleRanges}]`);

const mailInvisible = new RegExp(`(?!\\s)${invisible.source}|\\ufeff`, 'u');

// Ranges instead of \p{Cc}: the OpenAPI document contains these patterns, and many validators compile them without the
// flag `u`.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finds control characters
const controls = /[\x00-\x1f\x7f-\x9f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: finds control characters
const controlsExceptLineBreaksAndTab = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/;

/** Returns a pattern that finds a control character that the rule does not allow. */
export function forbiddenControls({ multiline }: TextRule): RegExp {
  return multiline ? controlsExceptLineBreaksAndTab : controls;
}

/**
 * The rule for an e-mail address. An SMTP path can carry at most 254 characters (RFC 5321, 4.5.3.1.3, less the angle
 * brackets).
 */
export const emailRule = textRule(254, {
  characters: {
    pattern: new RegExp(`^[^${invisibleRanges}]*$`),
    firstForbidden: (value) => value.search(mailInvisible),
    message: 'must not contain invisible characters',
  },
  format: patternFormat(/^[^\s@]+@[^\s@]+$/, /\s/, 'must have one @ with text on both sides and no white space'),
});

/** The rule for an http or https URL. */
export const urlRule = textRule(2_048, {
  format: {
    pattern: urlForm,
    matches: (value) => urlForm.test(value) && URL.canParse(value),
    forbidden: /[\s\\]/,
    message: 'must be an absolute http or https URL without user, password, backslash or white space',
  },
});

/**
 * Returns the first part of the rule that a text breaks, or `undefined`. The text is not trimmed or normalized before
 * the check.
 */
export function textError(rule: TextRule, value: string): BrokenRule | undefined {
  if (value === '' && !rule.required) return undefined;
  if (!isVisibleAscii(value)) {
    if (!value.isWellFormed()) return characterError('must be well-formed Unicode', value, value.search(loneSurrogate));
    const control = value.search(forbiddenControls(rule));
    if (control >= 0) return characterError('must not contain control characters', value, control);
    if (rule.required && isBlank(value)) return { code: 'blank', message: 'must contain a visible character' };
  }
  const length = codePointCount(value);
  if (length > rule.lengthMax) return { code: 'too_long', message: `must be at most ${rule.lengthMax} characters` };
  if (length < rule.lengthMin) return { code: 'too_short', message: `must be at least ${rule.lengthMin} characters` };
  const { characters, format } = rule;
  const firstForbidden = characters?.firstForbidden(value) ?? -1;
  if (characters !== undefined && firstForbidden >= 0) return characterError(characters.message, value, firstForbidden);
  if (format === undefined || format.matches(value)) return undefined;
  return {
    ...characterError(format.message, value, format.forbidden ? value.search(format.forbidden) : -1),
    code: 'bad_format',
  };
}

/** Returns the error for a forbidden character. The message names the character at `index`, or none if it is -1. */
export function characterError(message: string, value: string, index: number): BrokenRule {
  return { code: 'bad_characters', message: index < 0 ? message : `${message} (${characterAt(value, index)})` };
}

/** Whether a text is printable ASCII and not only spaces. Most texts are, and need no further character checks. */
function isVisibleAscii(value: string): boolean {
  let hasOnlySpaces = true;
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index);
    if (unit < 0x20 || unit > 0x7e) return false;
    if (unit !== 0x20) hasOnlySpaces = false;
  }
  return !hasOnlySpaces;
}

/** Returns the length in Unicode code points: UTF-16 units less one for each surrogate pair of a well-formed text. */
function codePointCount(value: string): number {
  let count = value.length;
  for (let index = 0; index < value.length; index += 1) {
    if ((value.charCodeAt(index) & 0xfc00) === 0xd800) count -= 1;
  }
  return count;
}
