import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, endpointResponse, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

export function getWebhookEndpointOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, WebhookService.method.getWebhookEndpoint, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const found = await manage((managed) => findEndpoint(managed, caller.account.id, id.value));
    if (!found.ok) return found;
    if (found.value === undefined) return failed(endpointNotFound);
    return success({ body: { endpoint: endpointResponse(found.value) }, outcome: 'ok' });
  });
}
