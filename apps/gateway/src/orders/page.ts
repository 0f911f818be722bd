import type { FieldError } from '@gateway/domain/field-rules';

export const pageLimit = { max: 100, byDefault: 20 } as const;

/** The error of a cursor that no page returned. */
export const cursorError: FieldError<string> = {
  field: 'cursor',
  code: 'bad_format',
  message: 'must be the next_cursor of a page',
};

/** The parameter `limit`: text in a URL, a number in a message. Adds an error where it is not valid. */
export function readLimit(value: unknown, errors: FieldError<string>[]): number {
  if (value === undefined) return pageLimit.byDefault;
  const text = String(value);
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  if (limit !== undefined && limit >= 1 && limit <= pageLimit.max) return limit;
  const code = limit === undefined && !/^-\d+$/.test(text) ? 'bad_format' : 'out_of_range';
  errors.push({ field: 'limit', code, message: `must be a whole number from 1 to ${pageLimit.max}` });
  return pageLimit.byDefault;
}

/** The opaque text that leads to the page after a position. */
export function encodeCursor(...position: readonly (string | number)[]): string {
  return Buffer.from(position.join('.')).toString('base64url');
}

/** The position in a cursor, not checked; empty for anything that is no cursor. */
export function decodeCursor(cursor: unknown): string {
  return typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('latin1') : '';
}
