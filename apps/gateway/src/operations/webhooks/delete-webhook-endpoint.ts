import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, readEndpointId } from './webhook-endpoint.ts';

export function deleteWebhookEndpointOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, WebhookService.method.deleteWebhookEndpoint, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const deleted = await manage((managed) => managed.remove(caller.account.id, id.value));
    if (!deleted.ok) return deleted;
    return deleted.value ? success({ body: {}, outcome: 'ok' }) : failed(endpointNotFound);
  });
}
