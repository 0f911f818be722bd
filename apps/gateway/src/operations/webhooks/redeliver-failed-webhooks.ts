import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { parseFailedSince } from '@order-gateway/domain/requests/parse-webhook-endpoint';
import { failed, success } from '@order-gateway/domain/result';
import { redeliveredMax } from '@order-gateway/postgres/webhooks/webhook-endpoints';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

export function redeliverFailedWebhooksOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, WebhookService.method.redeliverFailedWebhooks, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const since = parseFailedSince(members.failed_since);
    if (!since.ok) return failed({ kind: 'invalid_request', errors: since.failure });
    const merchantId = caller.account.id;
    const queued = await manage(async (managed) => ({
      found: await findEndpoint(managed, merchantId, id.value),
      count: await managed.redeliverFailed(merchantId, id.value, new Date(since.value)),
    }));
    if (!queued.ok) return queued;
    const { found, count } = queued.value;
    if (found === undefined) return failed(endpointNotFound);
    if (found.endpoint.disabledAt !== null) return failed({ kind: 'webhook_endpoint_disabled' });
    return success({ body: { queued: count, has_more: count === redeliveredMax }, outcome: 'accepted' });
  });
}
