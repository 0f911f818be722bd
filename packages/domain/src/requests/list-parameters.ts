import { hash } from 'node:crypto';
import type { Result } from '../result.ts';
import { type InvalidRequest, unlessInvalid } from './check-field.ts';
import type { FieldError } from './field-rules.ts';
import { checkUnixTime } from './iso-time.ts';

/** The maximum and default number of items on a page. */
export const pageLimit = { max: 100, byDefault: 20 } as const;

/** The parameters of a list as an API received them: any values under any names. `''` and `null` count as absent. */
export type ListInput = Readonly<Record<string, unknown>>;

/** A page of a list, and the function that makes the cursor of the next page. */
interface ListPage<Filter, Position> {
  readonly filter: Filter & { readonly limit: number };
  /** Returns the opaque cursor of the page after a position. It is valid for this merchant and these filters only. */
  cursorAfter(position: Position): string;
}

export type ParsedList<Filter, Position> = Result<ListPage<Filter, Position>, InvalidRequest>;

/** Checks that a list without parameters received none. */
export function parseCompleteList(input: ListInput): Result<undefined, InvalidRequest> {
  return unlessInvalid(knownParameters(input, []).errors, undefined);
}

/** Returns the values of the parameters with these names, and an error for each parameter with another name. */
export function knownParameters<Name extends string>(input: ListInput, names: readonly Name[]) {
  const values: Partial<Record<Name, unknown>> = {};
  for (const name of names) {
    const value = input[name];
    if (value !== '' && value !== null) values[name] = value;
  }
  const unknown = Object.keys(input).filter((name) => !(names as readonly string[]).includes(name));
  const message = names.length === 0 ? 'is unknown' : `is unknown; the parameters are ${names.join(', ')}`;
  const errors = unknown.map((field): FieldError<string> => ({ field, code: 'unknown_field', message }));
  return { values, errors };
}

/** Reads a parameter that must be one of the values. `message` states them. */
export function readChoice<Value extends string>(
  field: string,
  value: unknown,
  { values, message = `must be one of ${values.join(', ')}` }: { values: readonly Value[]; message?: string },
  errors: FieldError<string>[],
): Value | undefined {
  const choice = values.find((known) => known === value);
  if (value !== undefined && choice === undefined)
    errors.push({ field, code: 'not_allowed', message: Array.isArray(value) ? 'must be given only once' : message });
  return choice;
}

export function readTime(field: string, value: unknown, errors: FieldError<string>[]): number | undefined {
  if (value === undefined) return undefined;
  // An unencoded plus sign in a URL arrives as a space.
  const time = checkUnixTime(typeof value === 'string' ? value.replace(/ (?=\d\d:\d\d$)/, '+') : value);
  if (typeof time === 'number') return time;
  errors.push({ field, ...time });
  return undefined;
}

/** Reads the limit of a page, which is text in a URL and a number in a message. */
export function readLimit(value: unknown, errors: FieldError<string>[]): number {
  if (value === undefined) return pageLimit.byDefault;
  // An object may have no text form, because JSON can contain a member named `toString`.
  const text = typeof value === 'object' ? '' : String(value);
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  if (limit !== undefined && limit >= 1 && limit <= pageLimit.max) return limit;
  const code = limit === undefined && !/^-\d+$/.test(text) ? 'bad_format' : 'out_of_range';
  errors.push({ field: 'limit', code, message: `must be a whole number from 1 to ${pageLimit.max}` });
  return pageLimit.byDefault;
}

export const cursorError: FieldError<string> = {
  field: 'cursor',
  code: 'bad_format',
  message: 'must be the next_cursor of a page of the same list with the same filters',
};

/**
 * Returns a short digest of the list to which a cursor belongs. It only guards against mistakes: a forged cursor
 * reveals nothing that the merchant cannot list.
 */
export function scopeOf(list: string, merchantId: number, filter: object = {}): string {
  return hash('sha256', JSON.stringify([list, merchantId, filter])).slice(0, 12);
}

export function cursorOf(scope: string, ...position: readonly (string | number)[]): string {
  return Buffer.from([scope, ...position].join('.')).toString('base64url');
}

/**
 * Returns the parts of the position in a cursor. Adds an error if the text is not a cursor, or if it belongs to a
 * different list.
 */
export function readCursor(
  cursor: unknown,
  scope: string,
  form: RegExp,
  errors: FieldError<string>[],
): readonly string[] | undefined {
  if (cursor === undefined) return undefined;
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('latin1') : '';
  const position = text.startsWith(`${scope}.`) ? form.exec(text.slice(scope.length + 1)) : null;
  if (position === null) errors.push(cursorError);
  return position?.slice(1);
}
