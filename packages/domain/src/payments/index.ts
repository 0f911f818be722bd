export * from './parse-payment.ts';
export * from './parse-refund.ts';
