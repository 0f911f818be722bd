import {
  characterError,
  type FieldError,
  notString,
  type TextRule,
  textError,
  textRule,
} from '../requests/field-rules.ts';
import { failed, type Result, success } from '../result.ts';

/** A merchant's own data for an order: strings by key, sorted by key. */
export type Metadata = Readonly<Record<string, string>>;

/** The field name of an error about the metadata as a whole, or about one of its values. */
export type MetadataFieldName = 'metadata' | `metadata.${string}`;

/** The limits of an order's metadata. */
export const metadataLimits = { keys: 20, keyLength: 40, bytes: 8_192 } as const;

/** The maximum number of pairs by which a list can be filtered. */
export const metadataFilterMax = 2;

export const metadataKeyPattern = /^[A-Za-z0-9_.-]{1,40}$/;
const forbiddenInKey = /[^A-Za-z0-9_.-]/;

/** The rule for a value. */
export const metadataValueRule: TextRule = textRule(500);

const utf8 = new TextEncoder();

/**
 * Reads the optional member `metadata`. Returns `undefined` if it was not sent or has no keys, which Protobuf does not
 * distinguish. The error for an invalid key does not repeat the key, except for a forbidden character.
 */
export function parseMetadata(value: unknown): Result<Metadata | undefined, readonly FieldError<MetadataFieldName>[]> {
  if (value === undefined || value === null) return success(undefined);
  if (typeof value !== 'object' || Array.isArray(value)) {
    return failed([{ field: 'metadata', code: 'wrong_type', message: 'must be an object' }]);
  }
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return success(undefined);
  const errors: FieldError<MetadataFieldName>[] = [];
  if (entries.length > metadataLimits.keys) {
    errors.push({ field: 'metadata', code: 'too_long', message: `must have at most ${metadataLimits.keys} keys` });
  }
  // The trailers of gRPC can't hold errors for thousands of keys.
  const checked = entries.slice(0, metadataLimits.keys);
  // Protobuf's runtime for JavaScript cannot represent the key `__proto__`.
  const wrongKeys = checked.map(([key]) => key).filter((key) => !metadataKeyPattern.test(key) || key === '__proto__');
  if (wrongKeys.length > 0) {
    const message = `must have keys of 1 to ${metadataLimits.keyLength} characters A-Z a-z 0-9 _ . -, not __proto__`;
    const key = wrongKeys.find((key) => forbiddenInKey.test(key)) ?? '';
    errors.push({ field: 'metadata', ...characterError(message, key, key.search(forbiddenInKey)) });
  }
  let bytes = 0;
  for (const [key, text] of checked) {
    if (!metadataKeyPattern.test(key)) continue;
    const field = `metadata.${key}` as const;
    if (typeof text !== 'string') {
      errors.push({ field, ...notString });
      continue;
    }
    bytes += key.length + utf8.encode(text).length;
    const broken = textError(metadataValueRule, text);
    if (broken !== undefined) errors.push({ field, ...broken });
  }
  if (bytes > metadataLimits.bytes) {
    const message = `must have at most ${metadataLimits.bytes} bytes of UTF-8 in all keys and values`;
    errors.push({ field: 'metadata', code: 'too_long', message });
  }
  return errors.length === 0 ? success(Object.fromEntries(entries) as Metadata) : failed(errors);
}

/** Whether two orders have the same metadata. */
export function isSameMetadata(a: Metadata | null, b: Metadata | null): boolean {
  const [left, right] = [a ?? {}, b ?? {}];
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => left[key] === right[key]);
}
