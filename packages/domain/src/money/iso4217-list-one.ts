/**
 * ISO 4217 List One (the currencies and funds in use), as published by the maintenance agency SIX, as of 2026-02: 178
 * codes, grouped by their minor unit, which is the number of decimals in the currency's smallest amount. `null` marks
 * the codes that have no minor unit ("N.A." in the list: precious metals, bond market units, test and no-currency
 * codes).
 */
export const iso4217ListOne: readonly { readonly minorUnit: number | null; readonly codes: string }[] = [
  {
    minorUnit: 0,
    codes: `
    BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF
    `,
  },
  {
    minorUnit: 2,
    codes: `
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
    COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS
    INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR
    MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
    STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
    `,
  },
  {
    minorUnit: 3,
    codes: `
    BHD IQD JOD KWD LYD OMR TND
    `,
  },
  {
    minorUnit: 4,
    codes: `
    CLF UYW
    `,
  },
  {
    minorUnit: null,
    codes: `
    XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX
    `,
  },
];
