import { SignatureError } from './errors.ts';

/** Throws a {@link SignatureError} if a time in Unix seconds differs from now by more than the tolerance. */
export function checkSignedAt(unixSeconds: string, toleranceSeconds: number): void {
  const differenceSeconds = Math.abs(Date.now() / 1_000 - Number(unixSeconds));
  // Also for a text that is not a number.
  if (!(differenceSeconds <= toleranceSeconds)) {
    throw new SignatureError('The signature is too old, or the clocks differ');
  }
}
