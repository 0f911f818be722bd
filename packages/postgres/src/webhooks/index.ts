export * from './webhook-deliveries.ts';
export { openWebhookEndpoints, type ReencryptedSecrets, type WebhookEndpoints } from './webhook-endpoints.ts';
