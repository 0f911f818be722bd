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

  it('are allowed in an order if they have a minor unit, as 165 of them do', () => {
    expect(orderCurrencyCodes).toHaveLength(165);
    expect(listedCurrencyCodes.filter((code) => !orderCurrencyCodes.includes(code))).toStrictEqual(withoutMinorUnit);
  });

  it('have 0 decimals (17 of them), 2 (139), 3 (7) or 4 (2)', () => {
    const codesWith = (decimals: number) => orderCurrencyCodes.filter((code) => minorUnitOf(code) === decimals).length;

    expect([0, 1, 2, 3, 4].map(codesWith)).toStrictEqual([17, 0, 139, 7, 2]);
  });
});

describe('minorUnitOf', () => {
  it.each([
    [0, ['JPY', 'KRW', 'ISK', 'UYI']],
    // `Intl` (ICU 78) differs from the standard for HUF, IDR, COP, LAK and IQD.
    [2, ['EUR', 'USD', 'INR', 'XCG', 'HUF', 'TWD', 'IDR', 'COP', 'LAK']],
    [3, ['BHD', 'KWD', 'TND', 'IQD']],
    [4, ['CLF', 'UYW']],
  ])('returns %i decimals for %j', (decimals, codes) => {
    for (const code of codes) expect(minorUnitOf(code), code).toBe(decimals);
  });

  const unknown = ['usd', 'Usd', 'USD ', ' USD', 'US', 'USDX', 'ABC', 'HRK', 'BGN', 'DEM', '978', ''];
  const properties = ['constructor', '__proto__', 'toString', 'size'];
  it.each([...withoutMinorUnit, ...unknown, ...properties])('returns undefined for %j', (code) => {
    expect(minorUnitOf(code)).toBeUndefined();
  });
});
