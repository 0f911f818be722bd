export * from './parse-delivery-list.ts';
export * from './parse-webhook-endpoint.ts';
export * from './webhook-endpoint.ts';
export * from './webhook-signature.ts';
export * from './webhook-store.ts';
