/**
 * Whether a text ends with four characters whose check digits fit (ISO 7064, MOD 97-10), after the first four
 * characters were moved to the end. Letters count as 10 to 35. The check digits 00, 01 and 99 are never computed, but
 * would pass.
 */
export function hasCheckDigits(text: string): boolean {
  const digits = Number(text.slice(2, 4));
  return digits >= 2 && digits <= 98 && mod97(text.slice(4) + text.slice(0, 4)) === 1;
}

/** Returns the check digits for a text after a prefix of two letters. */
export function checkDigitsOf(prefix: string, text: string): string {
  return String(98 - mod97(`${text}${prefix}00`)).padStart(2, '0');
}

function mod97(text: string): number {
  const digits = Array.from(text, (character) => Number.parseInt(character, 36)).join('');
  return Number(BigInt(digits) % 97n);
}

/** Removes white space and changes letters to upper case, as both kinds of numbers may be written. */
export const compact = (text: string): string => text.replaceAll(/\s/g, '').toUpperCase();

/** Writes a number in groups of four, as it is printed. */
export const inGroups = (text: string): string => text.replaceAll(/.{4}(?=.)/g, '$& ');
