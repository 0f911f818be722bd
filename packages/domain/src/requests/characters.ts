/**
 * Finds a character without a glyph. The sources are properties of the Unicode Standard (UAX #44) and its code charts:
 * `White_Space`; `Default_Ignorable_Code_Point`, such as joiners, variation selectors, direction marks and the Hangul
 * fillers, which are not displayed if they are not supported (5.21); the controls (`Cc`); the characters that the code
 * charts describe as blank, U+2800, U+13441, U+13442 and U+1D159; and the annotation marks U+FFF9 to U+FFFB.
 */
export const invisible =
  /[\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cc}\u2800\ufff9-\ufffb\u{13441}\u{13442}\u{1d159}]/u;

/** Finds a visible character. A text without one is blank. */
const visible = new RegExp(invisible.source.replace('[', '[^'), 'u');

/** Whether a text, which may be empty, has no visible character. */
export function isBlank(text: string): boolean {
  return !visible.test(text);
}

/**
 * {@link invisible} below U+10000 as ranges, for the patterns of the OpenAPI document. Many validators compile these
 * patterns without the flag `u` and do not support properties.
 */
export const invisibleRanges =
  '\\x00-\\x20\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f\\u2028-\\u202f' +
  '\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb';

/** Finds an unpaired surrogate. */
export const loneSurrogate = /\p{Surrogate}/u;

/**
 * Returns the name of the character at an index and its position in code points, counted from 1:
 * `U+200B at position 18`.
 */
export function characterAt(text: string, index: number): string {
  const code = (text.codePointAt(index) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `U+${code} at position ${[...text.slice(0, index)].length + 1}`;
}
