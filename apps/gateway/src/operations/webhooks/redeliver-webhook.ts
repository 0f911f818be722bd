import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation, notFound, readId } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

const eventIdForm = /^evt_[0-9a-f]{32}$/;

export function redeliverWebhookOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, WebhookService.method.redeliverWebhook, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const eventId = readId(members, 'event_id', eventIdForm, 'event');
    if (!eventId.ok) return eventId;
    const merchantId = caller.account.id;
    const queued = await manage(async (managed) => ({
      found: await findEndpoint(managed, merchantId, id.value),
      isQueued: await managed.redeliver(merchantId, id.value, eventId.value),
    }));
    if (!queued.ok) return queued;
    const { found, isQueued } = queued.value;
    if (found === undefined) return failed(endpointNotFound);
    if (isQueued) return success({ body: {}, outcome: 'accepted' });
    return failed(found.endpoint.disabledAt === null ? notFound('event') : { kind: 'webhook_endpoint_disabled' });
  });
}
