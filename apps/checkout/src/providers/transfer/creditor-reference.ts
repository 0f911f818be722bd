import { checkDigitsOf, compact, hasCheckDigits } from './mod97.ts';

/** Returns the creditor reference of an order (ISO 11649), such as `RF712348231`. */
export function creditorReferenceOf(serviceOrderId: number): string {
  return `RF${checkDigitsOf('RF', `${serviceOrderId}`)}${serviceOrderId}`;
}

/** The largest service_order_id, 2^53 - 1, has 16 digits. */
const digitsMax = 16;

/**
 * Returns the creditor references of orders that a text contains, ignoring white space and case. Payers type other
 * digits directly behind a reference, so every length that has the right check digits counts.
 */
export function creditorReferencesIn(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [, run = ''] of compact(text).matchAll(/(?=(RF\d+))/g))
    for (let end = 5; end <= Math.min(run.length, 4 + digitsMax); end += 1)
      if (run[4] !== '0' && hasCheckDigits(run.slice(0, end))) found.add(run.slice(0, end));
  return [...found];
}
