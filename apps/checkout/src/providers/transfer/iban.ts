import { compact, hasCheckDigits } from './mod97.ts';

/** The countries of the SEPA schemes (EPC409-09) and the lengths of their account numbers (SWIFT, IBAN Registry). */
const lengths =
  'AD24 AL28 AT20 BE16 BG22 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FR27 GB22 GI23 GR27 HR21 HU28 IE22 IS26 IT27 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MT31 NL18 NO15 PL28 PT25 RO24 RS22 SE24 SI19 SK24 SM27 VA22'.split(
    ' ',
  );

/** Returns an account number without spaces; `undefined` unless it is an IBAN of a SEPA country. */
export function parseIban(text: string): string | undefined {
  const iban = compact(text);
  const isComplete = /^[A-Z]{2}\d{2}[A-Z\d]+$/.test(iban) && lengths.includes(`${iban.slice(0, 2)}${iban.length}`);
  return isComplete && hasCheckDigits(iban) ? iban : undefined;
}
