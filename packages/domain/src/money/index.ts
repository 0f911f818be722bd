export { minorUnitOf, orderCurrencyCodes } from './currency.ts';
export * from './money.ts';
