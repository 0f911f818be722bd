export * from './order-checksum.ts';
export * from './return-url.ts';
