import type { FieldErrorCode } from '@gateway/domain/field-rules';
import { amountHundredthsMax, formatAmount } from '@gateway/domain/money';

/** What each field code means: for the documentation. */
export const fieldCodesTold: Readonly<Record<FieldErrorCode, string>> = {
  missing: 'the field is required and is absent or null',
  wrong_type: 'the value has another JSON type',
  blank: 'the text has no character that is not blank',
  too_long: 'the text has too many characters',
  too_short: 'the text has too few characters',
  not_allowed: 'the value is none of those that are allowed',
  bad_format: 'the text does not have the form',
  bad_characters: 'the text holds a character that is not allowed there, or is not well-formed Unicode',
  too_precise: 'the amount has more decimals than two, or than the currency has',
  out_of_range: `the amount is not greater than 0 or is above ${formatAmount(amountHundredthsMax)}`,
};
