import type { AccountId } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import { formatTime } from '@order-gateway/domain/orders/order';
import type { Result } from '@order-gateway/domain/result';
import { allEventTypes, endpointIdForm } from '@order-gateway/domain/webhooks/webhook-endpoint';
import type { Managed } from '@order-gateway/postgres/merchant-management';
import type { StoredEndpoint } from '@order-gateway/postgres/webhooks/webhook-endpoints';
import { notFound, readId } from '../management.ts';
import type { Members } from '../operation.ts';

/** An endpoint, and whether its secret signs the merchant's returns. */
export interface FoundEndpoint {
  readonly endpoint: StoredEndpoint;
  readonly signsReturns: boolean;
}

export const endpointNotFound = notFound('webhook_endpoint');

/** Reads the endpoint's id of a request. */
export function readEndpointId(members: Members): Result<string, Failure> {
  return readId(members, 'id', endpointIdForm, 'webhook_endpoint');
}

/** The merchant's endpoints, oldest first. The oldest signs returns. */
export async function listEndpoints(managed: Managed, merchantId: AccountId): Promise<readonly FoundEndpoint[]> {
  const endpoints = await managed.list(merchantId);
  return endpoints.map((endpoint, index) => ({ endpoint, signsReturns: index === 0 }));
}

export async function findEndpoint(
  managed: Managed,
  merchantId: AccountId,
  endpointId: string,
): Promise<FoundEndpoint | undefined> {
  const endpoints = await listEndpoints(managed, merchantId);
  return endpoints.find(({ endpoint }) => endpoint.endpointId === endpointId);
}

/** An endpoint as the API returns it, with its signing secret only if that is new. */
export function endpointResponse({ endpoint, signsReturns }: FoundEndpoint, newSecret?: string) {
  const { endpointId, url, eventTypes, disabledAt, failingSince, createdAt } = endpoint;
  return {
    id: endpointId,
    url,
    event_types: eventTypes ?? [allEventTypes],
    status: disabledAt === null ? 'enabled' : 'disabled',
    created_at: formatTime(createdAt.getTime()),
    signs_returns: signsReturns,
    failing_since: failingSince === null ? undefined : formatTime(failingSince.getTime()),
    disabled_at: disabledAt === null ? undefined : formatTime(disabledAt.getTime()),
    signing_secret: newSecret,
  };
}
