export { equalsSecret } from '../signed-text.ts';
export * from './order-checksum.ts';
export * from './return-url.ts';
