export * from './checkout-link.ts';
export * from './order-token.ts';
export * from './payment-link.ts';
