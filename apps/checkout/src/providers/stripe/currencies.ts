import type { AmountHundredths } from '@order-gateway/domain/money';

// The presentment currencies, decimals, special cases and minimum amounts of docs.stripe.com/currencies, compared with
// several public copies of that page in November 2026. STN is omitted, because Stripe still lists its predecessor STD.

const currencies = new Set(
  `AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CLP CNY
  COP CRC CVE CZK DJF DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR ISK JMD
  JOD JPY KES KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD
  NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL
  THB TJS TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VND VUV WST XAF XCD XOF XPF YER ZAR ZMW`.split(/\s+/),
);

const withoutDecimals = 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ');
const withThreeDecimals = 'BHD JOD KWD OMR TND'.split(' ');
/** Stripe writes these in hundredths, but accepts whole amounts only. */
const wholeInHundredths = ['ISK', 'UGX'];

/** Stripe accepts at most 8 digits. */
const unitsMax = 99_999_999n;

/** The minimum, in hundredths, if the account settles in the same currency. */
const minimums: Readonly<Record<string, bigint>> = {
  USD: 50n,
  AED: 200n,
  AUD: 50n,
  BGN: 100n,
  BRL: 50n,
  CAD: 50n,
  CHF: 50n,
  CZK: 1_500n,
  DKK: 250n,
  EUR: 50n,
  GBP: 30n,
  HKD: 400n,
  HUF: 17_500n,
  INR: 50n,
  JPY: 5_000n,
  MXN: 1_000n,
  MYR: 200n,
  NOK: 300n,
  NZD: 50n,
  PLN: 200n,
  RON: 200n,
  SEK: 300n,
  SGD: 50n,
  THB: 1_000n,
};

/** Returns the number of decimals that Stripe writes; `undefined` if it does not accept the currency. */
function exponentOf(currency: string): number | undefined {
  if (!currencies.has(currency)) return undefined;
  if (withoutDecimals.includes(currency)) return 0;
  return withThreeDecimals.includes(currency) ? 3 : 2;
}

/** Returns the number of decimals that an amount may have; `undefined` if Stripe does not accept the currency. */
export function stripeDecimals(currency: string): number | undefined {
  return wholeInHundredths.includes(currency) ? 0 : exponentOf(currency);
}

/** Returns how many of Stripe's units are one of the currency's. */
const unitsPerWhole = (currency: string): bigint => 10n ** BigInt(exponentOf(currency) ?? 2);

/** Converts an amount, which must have at most the decimals of {@link stripeDecimals}, to Stripe's units. */
export function stripeUnits(amount: bigint, currency: string): number {
  return Number((amount * unitsPerWhole(currency)) / 100n);
}

/** Converts Stripe's units to an amount. */
export function fromStripeUnits(units: number, currency: string): AmountHundredths {
  return ((BigInt(units) * 100n) / unitsPerWhole(currency)) as AmountHundredths;
}

/** Returns the range of amounts, in hundredths. */
export function stripeRange(currency: string): readonly [min: bigint, max: bigint] {
  return [minimums[currency] ?? 1n, fromStripeUnits(Number(unitsMax), currency)];
}
