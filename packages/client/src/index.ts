export { createClient, type GatewayClient } from './client.ts';
export { GatewayError, GatewayNetworkError, SignatureError } from './errors.ts';
export type { Management } from './management.ts';
export { orderChecksum } from './order-checksum.ts';
export type { ClientOptions } from './request.ts';
export type * from './types.ts';
export { type SignedReturn, verifyReturn } from './verify-return.ts';
export { verifyWebhook, type WebhookHeaders } from './verify-webhook.ts';
