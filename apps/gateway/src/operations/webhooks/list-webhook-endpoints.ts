import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { parseCompleteList } from '@order-gateway/domain/requests/list-parameters';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointResponse, listEndpoints } from './webhook-endpoint.ts';

export function listWebhookEndpointsOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, WebhookService.method.listWebhookEndpoints, async (members, caller, manage) => {
    const parsed = parseCompleteList(members);
    if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
    const listed = await manage((managed) => listEndpoints(managed, caller.account.id));
    if (!listed.ok) return listed;
    const endpoints = listed.value.map((found) => endpointResponse(found));
    return success({ body: { endpoints }, outcome: 'ok' });
  });
}
