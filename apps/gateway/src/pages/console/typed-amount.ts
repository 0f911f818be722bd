const arabicDigit = /[٠-٩۰-۹]/g;

/**
 * Returns an amount as a JSON number would be written, from the way in which people write it in any language: `49,90`,
 * `1.249,50`, `1,249.50`, `1 249,50` or `12,34,567`. Returns `undefined` for an amount that means one thing in one
 * language and another in the next, such as `1,500`. Any other text is returned without its spaces, for CreateOrder to
 * reject.
 */
export function readTypedAmount(typed: string): string | undefined {
  const text = typed
    .replace(/[\s'’٬]/g, '')
    .replaceAll('٫', '.')
    // The last four bits of these characters are the digit.
    .replace(arabicDigit, (digit) => `${digit.charCodeAt(0) & 0b1111}`);
  if (/^[1-9]\d{0,2}[.,]\d{3}$/.test(text)) return undefined;
  const [, separator = ''] = /^[1-9]\d{0,2}([.,])(?:\d{2,3}\1)*\d{3}(?!\d|\1)/.exec(text) ?? [];
  return text.replaceAll(separator, '').replace(',', '.');
}
