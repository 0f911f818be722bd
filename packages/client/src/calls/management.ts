import { GatewayError } from '../errors.ts';
import type {
  Brand,
  BrandChange,
  ClientSecret,
  DeliveryFilter,
  NewClientSecret,
  NewWebhookEndpoint,
  PingResult,
  SignedWebhookEndpoint,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpointChange,
} from '../types.ts';
import { bodyOf, requirePlain } from './json.ts';
import { itemsOf, type Send } from './request.ts';

/**
 * Manages a merchant's webhook endpoints, client secrets and brand. If the operator manages them instead, every call
 * rejects with `permission_denied`. Calls that return a new secret are not retried if their outcome is unknown
 * (`outcomeUnknown`), because each attempt creates another secret: list the existing ones first.
 */
export interface Management {
  /** Creates an endpoint. You can have at most 5. Store its `signing_secret`, which is returned only once. */
  createWebhookEndpoint(endpoint: NewWebhookEndpoint): Promise<SignedWebhookEndpoint>;
  /** Returns an endpoint. Rejects with `not_found` if you have no endpoint with this id. */
  getWebhookEndpoint(id: string): Promise<WebhookEndpoint>;
  /** Returns all endpoints, oldest first. */
  listWebhookEndpoints(): Promise<readonly WebhookEndpoint[]>;
  /** Changes an endpoint. Absent members and the signing secret stay the same. */
  updateWebhookEndpoint(id: string, change: WebhookEndpointChange): Promise<WebhookEndpoint>;
  /** Deletes an endpoint and discards its pending deliveries. */
  deleteWebhookEndpoint(id: string): Promise<void>;
  /** Sends one `webhook.test` to an endpoint and returns the result. */
  pingWebhookEndpoint(id: string): Promise<PingResult>;
  /** Replaces the signing secret. For 24 hours, deliveries are also signed with the previous one. */
  rotateWebhookSecret(id: string): Promise<SignedWebhookEndpoint>;
  /** Iterates over the deliveries to an endpoint, newest event first, and fetches each page on demand. */
  listWebhookDeliveries(id: string, filter?: DeliveryFilter): AsyncGenerator<WebhookDelivery, void, void>;
  /** Redelivers an event of the last 30 days to an endpoint. */
  redeliverWebhook(id: string, eventId: string): Promise<void>;
  /**
   * Redelivers every event whose delivery to the endpoint failed at or after `failedSince`, a Date or an RFC 3339 time.
   * Returns the number of redeliveries queued.
   */
  redeliverFailedWebhooks(id: string, failedSince: string | Date): Promise<number>;
  /** Creates a client secret, which works immediately. At most 5 secrets can be valid at the same time. */
  createClientSecret(): Promise<NewClientSecret>;
  /** Returns all client secrets without their values, oldest first. */
  listClientSecrets(): Promise<readonly ClientSecret[]>;
  /**
   * Revokes a client secret, which stops working within a second. Rejects with `last_client_secret` if no other secret
   * is valid.
   */
  revokeClientSecret(id: string): Promise<ClientSecret>;
  /** Returns the brand that your payment pages show. */
  getBrand(): Promise<Brand>;
  /** Changes the brand. Absent members stay the same, and empty members are removed. */
  updateBrand(change: BrandChange): Promise<Brand>;
}

const notRepeatable = { isRepeatable: false } as const;

export function createManagement(send: Send): Management {
  const endpointPath = (id: string) => `/webhook_endpoints/${encodeURIComponent(id)}`;
  return {
    async createWebhookEndpoint(endpoint) {
      return send('POST', '/webhook_endpoints', bodyOf(endpoint), notRepeatable);
    },
    async getWebhookEndpoint(id) {
      return send('GET', endpointPath(id));
    },
    async listWebhookEndpoints() {
      return (await send<{ endpoints: WebhookEndpoint[] }>('GET', '/webhook_endpoints')).endpoints;
    },
    async updateWebhookEndpoint(id, change) {
      return send('PATCH', endpointPath(id), bodyOf(change));
    },
    async deleteWebhookEndpoint(id) {
      try {
        await send('DELETE', endpointPath(id));
      } catch (error) {
        // An earlier attempt without a usable response may have deleted the endpoint.
        const isDeleted = error instanceof GatewayError && error.code === 'not_found' && error.outcomeUnknown;
        if (!isDeleted) throw error;
      }
    },
    async pingWebhookEndpoint(id) {
      return send('POST', `${endpointPath(id)}/ping`);
    },
    async rotateWebhookSecret(id) {
      return send('POST', `${endpointPath(id)}/rotate_secret`, undefined, notRepeatable);
    },
    listWebhookDeliveries(id, { orderId, ...filter } = {}) {
      type Page = { readonly deliveries: readonly WebhookDelivery[] };
      return itemsOf(
        send,
        `${endpointPath(id)}/deliveries`,
        { ...filter, order_id: orderId },
        (page: Page) => page.deliveries,
      );
    },
    async redeliverWebhook(id, eventId) {
      await send('POST', `${endpointPath(id)}/deliveries/${encodeURIComponent(eventId)}/redeliver`);
    },
    async redeliverFailedWebhooks(id, failedSince) {
      const body = bodyOf({ failed_since: failedSince });
      let total = 0;
      for (;;) {
        const path = `${endpointPath(id)}/redeliver`;
        const { queued, has_more } = await send<{ queued: number; has_more: boolean }>('POST', path, body);
        total += queued;
        if (!has_more) return total;
      }
    },
    async createClientSecret() {
      return send('POST', '/client_secrets', undefined, notRepeatable);
    },
    async listClientSecrets() {
      return (await send<{ secrets: ClientSecret[] }>('GET', '/client_secrets')).secrets;
    },
    async revokeClientSecret(id) {
      return send('POST', `/client_secrets/${encodeURIComponent(id)}/revoke`);
    },
    async getBrand() {
      return send('GET', '/brand');
    },
    async updateBrand(change) {
      const { logo, ...texts } = requirePlain(change, 'The change') as BrandChange;
      // Other values, such as an ArrayBuffer, would be read as an empty image, which removes the logo.
      if (logo !== undefined && !(logo instanceof Uint8Array)) throw new TypeError('logo must be a Uint8Array');
      const image = logo && btoa(Array.from(logo, (byte) => String.fromCharCode(byte)).join(''));
      return send('PATCH', '/brand', bodyOf({ ...texts, logo: image }));
    },
  };
}
