export * from './parse-payment.ts';
