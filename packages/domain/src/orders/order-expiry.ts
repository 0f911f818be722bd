import type { Merchant } from '../accounts/account.ts';
import type { FieldError } from '../requests/field-rules.ts';
import { checkTime } from '../requests/iso-time.ts';
import { failed, type Result, success } from '../result.ts';

/** The shortest and the longest lifetime of an order in milliseconds: 1 minute and 366 days. */
export const lifetimeMs = { min: 60_000, max: 366 * 86_400_000 } as const;

/**
 * Reads the optional field `order_expires_at`: milliseconds since 1970-01-01 UTC, or `undefined` if it was not sent.
 * Whether the time lies in the allowed range is checked for new orders only: see {@link expiryRangeError}.
 */
export function parseExpiry(value: unknown): Result<number | undefined, FieldError<'order_expires_at'>> {
  if (value === undefined || value === null) return success(undefined);
  const expiresAtMs = checkTime(value);
  return typeof expiresAtMs === 'number' ? success(expiresAtMs) : failed({ field: 'order_expires_at', ...expiresAtMs });
}

/**
 * Returns the error of an expiry that is too near or too far for a new order; `undefined` if there is none. Do not
 * check a replay, because its order may be close to or past its expiry.
 */
export function expiryRangeError(expiresAtMs: number, nowMs: number): FieldError<'order_expires_at'> | undefined {
  const remainingMs = expiresAtMs - nowMs;
  if (remainingMs >= lifetimeMs.min && remainingMs <= lifetimeMs.max) return undefined;
  return { field: 'order_expires_at', code: 'out_of_range', message: 'must be 1 minute to 366 days ahead' };
}

/**
 * Returns the expiry of a new order: the one that was sent, or the end of the merchant's default lifetime; `null`: it
 * never expires.
 */
export function expiryOfNewOrder(
  sentMs: number | undefined,
  { defaultLifetimeSeconds }: Pick<Merchant, 'defaultLifetimeSeconds'>,
  nowMs: number,
): number | null {
  if (sentMs !== undefined) return sentMs;
  return defaultLifetimeSeconds === null ? null : nowMs + defaultLifetimeSeconds * 1_000;
}
