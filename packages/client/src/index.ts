export { createClient, type GatewayClient } from './calls/client.ts';
export type { Management } from './calls/management.ts';
export type { ClientOptions } from './calls/request.ts';
export { GatewayError, GatewayNetworkError, SignatureError } from './errors.ts';
export { orderChecksum } from './signatures/order-checksum.ts';
export { type SignedReturn, verifyReturn } from './signatures/verify-return.ts';
export { verifyWebhook, type WebhookHeaders } from './signatures/verify-webhook.ts';
export type * from './types.ts';
