import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { formatTime } from '@order-gateway/domain/orders/order';
import { parseDeliveryList } from '@order-gateway/domain/requests/list-parameters';
import { failed, success } from '@order-gateway/domain/result';
import { deliveryStatusOf, type StoredDelivery } from '@order-gateway/postgres/webhooks/webhook-endpoints';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

export function listWebhookDeliveriesOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, WebhookService.method.listWebhookDeliveries, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const merchantId = caller.account.id;
    const parsed = parseDeliveryList(merchantId, id.value, members);
    if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
    const { filter, cursorAfter } = parsed.value;
    const listed = await manage(async (managed) => {
      const found = await findEndpoint(managed, merchantId, id.value);
      return found && managed.pageOfDeliveries(merchantId, id.value, { ...filter, limit: filter.limit + 1 });
    });
    if (!listed.ok) return listed;
    if (listed.value === undefined) return failed(endpointNotFound);
    const page = listed.value.slice(0, filter.limit);
    const last = listed.value.length > filter.limit ? page.at(-1) : undefined;
    const body = { deliveries: page.map(deliveryResponse), next_cursor: last && cursorAfter(last) };
    return success({ body, outcome: 'ok' });
  });
}

function deliveryResponse(delivery: StoredDelivery) {
  const { eventId, type, createdAt, attempts, lastAttemptAt, lastResult, nextAttemptAt, deliveredAt } = delivery;
  return {
    event_id: eventId,
    type,
    created_at: formatTime(createdAt.getTime()),
    status: deliveryStatusOf(delivery),
    attempts,
    last_attempt_at: formatOptional(lastAttemptAt),
    last_result: lastResult ?? undefined,
    next_attempt_at: formatOptional(nextAttemptAt),
    delivered_at: formatOptional(deliveredAt),
  };
}

function formatOptional(time: Date | null): string | undefined {
  return time === null ? undefined : formatTime(time.getTime());
}
