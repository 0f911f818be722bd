export * from './webhook-deliveries.ts';
export {
  deliveryStatusOf,
  openWebhookEndpoints,
  type ReencryptedSecrets,
  redeliveredMax,
  type StoredDelivery,
  type StoredEndpoint,
  secretOverlapHours,
  type WebhookEndpoints,
} from './webhook-endpoints.ts';
