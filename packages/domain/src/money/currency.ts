import { iso4217ListOne } from './iso4217-list-one.ts';

const minorUnits = new Map<string, number | null>(
  iso4217ListOne.flatMap(({ minorUnit, codes }) =>
    codes
      .trim()
      .split(/\s+/)
      .map((code): [string, number | null] => [code, minorUnit]),
  ),
);

/** Every code of ISO 4217 List One, including those that cannot price an order, in alphabetical order. */
export const listedCurrencyCodes: readonly string[] = [...minorUnits.keys()].sort();

/** The codes that an order may have: those with a minor unit. */
export const orderCurrencyCodes: readonly string[] = listedCurrencyCodes.filter(
  (code) => minorUnitOf(code) !== undefined,
);

/**
 * Returns the number of decimals of a currency's smallest amount: 0, 2, 3 or 4. `undefined` for a code that is not
 * listed or has no minor unit. `Intl` is not the source, because its display digits differ from the standard for 16
 * codes that have a minor unit (ICU 78).
 */
export function minorUnitOf(code: string): number | undefined {
  return minorUnits.get(code) ?? undefined;
}
