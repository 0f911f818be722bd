import type { AccountId } from '../accounts/account.ts';
import type { EventType } from '../orders/order-states.ts';
import type { StoredTime } from '../requests/iso-time.ts';
import type { DeliveryListFilter } from './parse-delivery-list.ts';
import type { EndpointSettings } from './parse-webhook-endpoint.ts';
import type { DeliveryStatus } from './webhook-endpoint.ts';

/** How long deliveries and return links are also signed with the previous secret after a rotation. */
export const secretOverlapHours = 24;

/** The maximum number of deliveries that one call of `redeliverFailed` queues again. */
export const redeliveredMax = 1_000;

/** An endpoint as it is stored, with its secrets encrypted. */
export interface WebhookEndpoint {
  readonly endpointId: string;
  readonly url: string;
  /** The types of events that are delivered; `null`: all. */
  readonly eventTypes: readonly EventType[] | null;
  readonly signingSecret: Uint8Array;
  /**
   * The secret before a rotation, or of the endpoint that signed return links before this one. It still signs
   * deliveries. `null` if there is none.
   */
  readonly previousSecret: Uint8Array | null;
  readonly createdAt: StoredTime;
  /** Set if deliveries have stopped: the merchant disabled the endpoint, or it responded with 410. */
  readonly disabledAt: StoredTime | null;
  /** Set while the latest attempt failed. */
  readonly failingSince: StoredTime | null;
}

/**
 * Returns the endpoint whose secret signs a merchant's return links: the oldest one that is enabled. Without any, the
 * one that was disabled last continues to sign. `endpoints` are in the order of their creation.
 */
export function returnSigner<Endpoint extends Pick<WebhookEndpoint, 'disabledAt'>>(
  endpoints: readonly Endpoint[],
): Endpoint | undefined {
  const enabled = endpoints.find(({ disabledAt }) => disabledAt === null);
  return enabled ?? endpoints.toSorted((a, b) => Number(b.disabledAt) - Number(a.disabledAt))[0];
}

/** A delivery as it is stored, with the event that it delivers. */
export interface WebhookDelivery {
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: EventType;
  readonly createdAt: StoredTime;
  readonly attempts: number;
  readonly lastAttemptAt: StoredTime | null;
  readonly deliveredAt: StoredTime | null;
  /** `null` unless another attempt follows. */
  readonly nextAttemptAt: StoredTime | null;
  /** The result that the merchant sees, such as `HTTP 500`. */
  readonly lastResult: string | null;
}

/** Returns the status of a delivery. */
export function deliveryStatusOf({
  deliveredAt,
  nextAttemptAt,
}: Pick<WebhookDelivery, 'deliveredAt' | 'nextAttemptAt'>): DeliveryStatus {
  if (deliveredAt !== null) return 'delivered';
  return nextAttemptAt === null ? 'failed' : 'pending';
}

/** The webhook endpoints of merchants and their deliveries. The audit log records every change. */
export interface WebhookStore {
  /** Returns the merchant's endpoints, oldest first. */
  list(merchantId: AccountId): Promise<readonly WebhookEndpoint[]>;

  /**
   * Creates an endpoint, for all types of events by default, and returns its id. Returns `undefined` if the merchant
   * already has `endpointsMax` endpoints.
   */
  create(
    merchantId: AccountId,
    endpoint: Pick<WebhookEndpoint, 'url' | 'signingSecret'> &
      Partial<Pick<EndpointSettings, 'eventTypes'> & Pick<WebhookEndpoint, 'disabledAt'>>,
  ): Promise<string | undefined>;

  /**
   * Changes an endpoint. Absent members and the signing secret stay as they are. Returns whether the merchant has such
   * an endpoint.
   */
  update(merchantId: AccountId, endpointId: string, settings: Partial<EndpointSettings>): Promise<boolean>;

  /**
   * Replaces the signing secret; the previous one stays valid for {@link secretOverlapHours}. Returns whether the
   * merchant has such an endpoint.
   */
  rotate(merchantId: AccountId, endpointId: string, signingSecret: Uint8Array): Promise<boolean>;

  /**
   * Removes an endpoint and discards its pending deliveries. If its secret signs return links, it is kept as the
   * previous secret of the next signer, unless that has its own previous secret. Returns whether the merchant had the
   * endpoint.
   */
  remove(merchantId: AccountId, endpointId: string): Promise<boolean>;

  /** Returns the newest deliveries to one endpoint that match the filter, newest first. */
  pageOfDeliveries(
    merchantId: AccountId,
    endpointId: string,
    filter: Partial<DeliveryListFilter> & { readonly limit: number },
  ): Promise<readonly WebhookDelivery[]>;

  /**
   * Queues an event again as if it were new, even if it is older than the endpoint. Returns whether the merchant has
   * such an event and an endpoint that is not disabled.
   */
  redeliver(merchantId: AccountId, endpointId: string, eventId: string): Promise<boolean>;

  /**
   * Queues unsuccessful deliveries to an enabled endpoint again if their last attempt was at this time or later and is
   * not in flight: at most {@link redeliveredMax}, oldest first. Returns the number of deliveries.
   */
  redeliverFailed(merchantId: AccountId, endpointId: string, since: StoredTime): Promise<number>;
}
