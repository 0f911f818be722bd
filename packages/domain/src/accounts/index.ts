export { type RandomBytes, randomBase62 } from '../base62.ts';
export * from './account.ts';
export * from './brand.ts';
export * from './client-secrets.ts';
export * from './console-session.ts';
export * from './credentials.ts';
