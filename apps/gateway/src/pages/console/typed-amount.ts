import type { Failure } from '@order-gateway/domain/failure';
import { NumberText } from '@order-gateway/domain/money';
import type { FieldError } from '@order-gateway/domain/requests';

const arabicDigit = /[٠-٩۰-۹]/g;

/**
 * Returns an amount as a JSON number would be written, from the way in which people write it in any language: `49,90`,
 * `1.249,50`, `1,249.50`, `1 249,50` or `12,34,567`. Returns `undefined` for an amount whose meaning depends on the
 * language, such as `1,500`. Any other text is returned without its spaces, for CreateOrder to reject.
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

/** The API rejects this amount. It stands for an ambiguous one, which has three decimals or none. */
const tooPreciseAmount = '0.001';

/** Returns a typed amount as a member of a request. */
export function typedAmount(typed: string): NumberText {
  return new NumberText(readTypedAmount(typed) ?? tooPreciseAmount);
}

/**
 * Returns the errors of a form's fields. The error of an ambiguous amount in the field `name` gets the message `form`.
 */
export function explainAmount(
  failure: Failure | undefined,
  name: string,
  typed: string | null,
  form: string,
): readonly FieldError<string>[] {
  const errors = failure !== undefined && 'errors' in failure ? failure.errors : [];
  const isAmbiguous = readTypedAmount(typed ?? '') === undefined;
  return errors.map((error) => (isAmbiguous && error.field === name ? { ...error, message: form } : error));
}
