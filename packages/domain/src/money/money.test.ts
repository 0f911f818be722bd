import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AmountHundredths,
  amountHundredthsMax,
  digitsOfDouble,
  fitsMinorUnit,
  formatAmount,
  parseAmount,
} from './money.ts';

const anyAmount = fc.bigInt({ min: 1n, max: amountHundredthsMax }).map((hundredths) => hundredths as AmountHundredths);

/** Digits with many zeros and nines, because they are the edge cases. */
const anyDigits = (constraints: fc.StringConstraints) =>
  fc.string({ ...constraints, unit: fc.constantFrom(...'0000123456789999') });

const anyNumberParts = fc.record({
  sign: fc.constantFrom('', '', '', '-'),
  integer: anyDigits({ minLength: 1, maxLength: 20 }),
  fraction: fc.option(anyDigits({ minLength: 1, maxLength: 20 }), { nil: undefined }),
  exponent: fc.option(fc.integer({ min: -30, max: 30 }), { nil: undefined }),
  exponentForm: fc.constantFrom('e', 'E', 'e+', 'E+', 'e0', 'e+00'),
});

interface NumberParts {
  readonly sign: string;
  readonly integer: string;
  readonly fraction: string | undefined;
  readonly exponent: number | undefined;
  readonly exponentForm: string;
}

function textOf({ sign, integer, fraction, exponent, exponentForm }: NumberParts): string {
  const power =
    exponent === undefined ? '' : exponent < 0 ? `${exponentForm[0]}${exponent}` : `${exponentForm}${exponent}`;
  return `${sign}${integer}${fraction === undefined ? '' : `.${fraction}`}${power}`;
}

/** Returns the expected result, computed as a fraction of integers: a numerator over a power of ten. */
function expectedOf({ sign, integer, fraction = '', exponent = 0 }: NumberParts): {
  hundredths?: bigint;
  errors: string[];
} {
  const scale = exponent - fraction.length + 2;
  const digits = BigInt(sign + integer + fraction);
  const numerator = scale >= 0 ? digits * 10n ** BigInt(scale) : digits;
  const denominator = scale >= 0 ? 1n : 10n ** BigInt(-scale);
  const errors: string[] = [];
  if (numerator <= 0n || numerator > amountHundredthsMax * denominator) errors.push('out_of_range');
  if (numerator % denominator !== 0n) errors.push('too_precise');
  return errors.length === 0 ? { hundredths: numerator / denominator, errors } : { errors };
}

/** Returns the hundredths, or the error code. */
function outcomeOf(digits: string): bigint | string {
  const amount = parseAmount(digits);
  return amount.ok ? amount.value : amount.failure;
}

describe('parseAmount', () => {
  it('parses what formatAmount returns, for every amount', () => {
    fc.assert(
      fc.property(anyAmount, (amount) => {
        expect(parseAmount(formatAmount(amount))).toStrictEqual({ ok: true, value: amount });
      }),
      { numRuns: 1_000 },
    );
  });

  it('agrees with exact fractions for every number', () => {
    fc.assert(
      fc.property(anyNumberParts, (parts) => {
        const expected = expectedOf(parts);
        const amount = parseAmount(textOf(parts));
        if (expected.hundredths !== undefined) expect(amount).toStrictEqual({ ok: true, value: expected.hundredths });
        else expect(expected.errors).toContain(amount.ok ? amount : amount.failure);
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    [1n, ['0.01', '1e-2']],
    [10n, ['0.1', '0.10']],
    [29n, ['0.29']],
    [115n, ['1.15']],
    [435n, ['4.35']],
    [1_000n, ['10', '10.0', '10.00', '10.000', '1e1', '1E1', '1e+1', '1.0e1', '0.1e2', '100e-1', '1000000e-5']],
    [124_950n, ['1249.5']],
    [100_000_000_000_000n, ['1e12']],
    [999_999_999_999_900n, ['9999999999999']],
    [999_999_999_999_999n, ['9999999999999.99', '9999999999999.990000000000', '0.999999999999999e13']],
    ['too_precise', ['0.001', '0.011', '10.001', '10.000000000000000001', '1e-3', '1e-400', '1e-999999999999']],
    ['too_precise', ['0.009999999999']],
    ['out_of_range', ['0', '-0', '0.00', '-0.00', '0e5', '0e999999999999', '0e-999999999999', '0.000000000000000000']],
    ['out_of_range', ['-0.01', '-1', '-10.00', '-1e400', '9e999']],
    ['out_of_range', ['10000000000000', '10000000000000.00', '1e13', '99999999999999', '1e400', '1e999999999999']],
    [
      'wrong_type',
      ['', ' ', '10 ', ' 10', '10\n', '+10', '.5', '5.', '1e', '1e+', '1.e2', '1,5', '1_000', '0x10', '10n'],
    ],
    ['wrong_type', ['--1', 'NaN', 'Infinity', '-Infinity', 'null', 'ten', '१०', '１０', '1e１', '1\u00002']],
  ])('returns %s for %j', (outcome, texts) => {
    for (const text of texts) expect(outcomeOf(text), text).toBe(outcome);
  });

  it('never throws', () => {
    const numberLike = fc.string({ unit: fc.constantFrom(...'0019.-+eE \n'), maxLength: 30 });
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), numberLike), (text) => {
        expect([true, false]).toContain(parseAmount(text).ok);
      }),
      { numRuns: 2_000 },
    );
  });

  // A quadratic parser would need minutes for these texts, and the test would time out.
  it('parses texts of almost 64 KiB in linear time', () => {
    const zeros = '0'.repeat(65_000);
    const ones = '1'.repeat(65_000);
    const expected = new Map<string, bigint | string>([
      [`${zeros}1`, 100n],
      [`1.${zeros}`, 100n],
      [`0.${zeros}1e65001`, 100n],
      [`1${zeros}e-65000`, 100n],
      [`1${zeros}1`, 'out_of_range'],
      [`1${zeros}.${zeros.slice(0, 500)}1`, 'out_of_range'],
      [`1.${zeros}1`, 'too_precise'],
      [`0.1${zeros}1${zeros.slice(0, 500)}`, 'too_precise'],
      [`${ones}e-64990`, 'too_precise'],
      [`1e-${ones}`, 'too_precise'],
      [ones, 'out_of_range'],
      [`1e${ones}`, 'out_of_range'],
      [`0.${zeros}`, 'out_of_range'],
      [`${zeros}x`, 'wrong_type'],
      [`1.${ones}x`, 'wrong_type'],
      [`1e${ones}x`, 'wrong_type'],
      ['-'.repeat(65_000), 'wrong_type'],
    ]);

    for (let round = 0; round < 10; round += 1) {
      for (const [digits, outcome] of expected) {
        expect(outcomeOf(digits), `${digits.slice(0, 4)}… (${digits.length})`).toBe(outcome);
      }
    }
  });
});

describe('digitsOfDouble', () => {
  it('returns the digits of every amount, because a double stores 15 digits exactly', () => {
    fc.assert(
      fc.property(anyAmount, (amount) => {
        const double = Number(formatAmount(amount));
        expect(parseAmount(digitsOfDouble(double))).toStrictEqual({ ok: true, value: amount });
      }),
      { numRuns: 1_000 },
    );
  });

  it('returns digits that read back as the same double', () => {
    fc.assert(
      fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (double) => {
        expect(Number(digitsOfDouble(double))).toBe(double === 0 ? 0 : double);
      }),
    );
  });

  it.each([
    [1_000n, [10, 1e1]],
    [1n, [0.01]],
    [999_999_999_999_999n, [9_999_999_999_999.99]],
    ['too_precise', [0.1 + 0.2, 10.001, 1e-7, Number.MIN_VALUE]],
    ['out_of_range', [0, -0, -10, 1e13, 1e21, Number.MAX_VALUE]],
    ['wrong_type', [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
  ])('returns digits that parse as %s for the doubles %j', (outcome, doubles) => {
    for (const double of doubles) expect(outcomeOf(digitsOfDouble(double)), String(double)).toBe(outcome);
  });
});

describe('fitsMinorUnit', () => {
  it.each([
    [10_000n, 0, true],
    [10_050n, 0, false],
    [10_001n, 0, false],
    [1n, 0, false],
    [10_050n, 1, true],
    [10_055n, 1, false],
    [10_055n, 2, true],
    [10_055n, 3, true],
    [1n, 4, true],
  ])('%d hundredths fit a currency with %i decimals: %s', (hundredths, minorUnit, fits) => {
    expect(fitsMinorUnit(hundredths as AmountHundredths, minorUnit)).toBe(fits);
  });
});

describe('formatAmount', () => {
  it.each([
    [1n, '0.01'],
    [10n, '0.10'],
    [99n, '0.99'],
    [100n, '1.00'],
    [1_000n, '10.00'],
    [124_950n, '1249.50'],
    [999_999_999_999_999n, '9999999999999.99'],
  ])('formats %d hundredths as %s', (hundredths, formatted) => {
    expect(formatAmount(hundredths as AmountHundredths)).toBe(formatted);
  });

  it('formats every amount with two decimals, no leading zero and no grouping', () => {
    fc.assert(
      fc.property(anyAmount, (amount) => {
        expect(formatAmount(amount)).toMatch(/^(0|[1-9]\d{0,12})\.\d\d$/);
      }),
    );
  });
});
