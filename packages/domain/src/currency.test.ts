import { describe, expect, it } from 'vitest';
import { listedCurrencyCodes, minorUnitOf, orderCurrencyCodes } from './currency.ts';
import { iso4217ListOne } from './iso4217-list-one.ts';

const withoutMinorUnit = 'XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX'.split(' ');

describe('the currencies', () => {
  it('are the 178 codes of ISO 4217 List One, each once', () => {
    const codes = iso4217ListOne.flatMap((group) => group.codes.trim().split(/\s+/));

    expect(codes).toHaveLength(178);
    expect(new Set(codes).size).toBe(178);
    expect(codes.every((code) => /^[A-Z]{3}$/.test(code))).toBe(true);
    expect(listedCurrencyCodes).toStrictEqual(codes.toSorted());
  });

  it('are allowed in an order if they have a minor unit: 165 of them', () => {
    expect(orderCurrencyCodes).toHaveLength(165);
    expect(listedCurrencyCodes.filter((code) => !orderCurrencyCodes.includes(code))).toStrictEqual(withoutMinorUnit);
  });

  it('have 0, 2, 3 or 4 decimals, as often as in the list', () => {
    const codesWith = (decimals: number) => orderCurrencyCodes.filter((code) => minorUnitOf(code) === decimals).length;

    expect([0, 1, 2, 3, 4].map(codesWith)).toStrictEqual([17, 0, 139, 7, 2]);
  });
});

describe('minorUnitOf', () => {
  it.each([
    ['JPY', 0],
    ['KRW', 0],
    ['ISK', 0],
    ['UYI', 0],
    ['EUR', 2],
    ['USD', 2],
    ['INR', 2],
    ['XCG', 2],
    ['BHD', 3],
    ['KWD', 3],
    ['TND', 3],
    ['CLF', 4],
    ['UYW', 4],
  ])('returns for %s its %i decimals', (code, decimals) => {
    expect(minorUnitOf(code)).toBe(decimals);
  });

  // Codes for which `Intl` has another number than the standard.
  it.each([
    ['HUF', 2],
    ['TWD', 2],
    ['IDR', 2],
    ['COP', 2],
    ['LAK', 2],
    ['IQD', 3],
  ])('returns for %s the %i decimals of the standard', (code, decimals) => {
    expect(minorUnitOf(code)).toBe(decimals);
  });

  it.each([...withoutMinorUnit, 'usd', 'Usd', 'USD ', ' USD', 'US', 'USDX', 'ABC', 'HRK', 'BGN', 'DEM', '978', ''])(
    'returns undefined for %j',
    (code) => {
      expect(minorUnitOf(code)).toBeUndefined();
    },
  );

  it.each(['constructor', '__proto__', 'toString', 'size'])(
    'does not treat the property name %s as a currency',
    (word) => {
      expect(minorUnitOf(word)).toBeUndefined();
    },
  );
});
