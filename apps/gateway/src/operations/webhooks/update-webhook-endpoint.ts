import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { parseEndpoint } from '@order-gateway/domain/requests/parse-webhook-endpoint';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { urlFailure } from './url-rule.ts';
import { endpointNotFound, endpointResponse, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

export function updateWebhookEndpointOperation(
  deps: Pick<OperationDeps, 'management' | 'webhookAddresses'>,
): Operation {
  return managementOperation(deps, WebhookService.method.updateWebhookEndpoint, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const parsed = parseEndpoint(members, false);
    if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
    const settings = parsed.value;
    const notAllowed = settings.url === undefined ? undefined : urlFailure(settings.url, deps.webhookAddresses);
    if (notAllowed !== undefined) return failed(notAllowed);
    const merchantId = caller.account.id;
    const isChange = Object.values(settings).some((value) => value !== undefined);
    const updated = await manage(async (managed) => {
      if (isChange) await managed.update(merchantId, id.value, settings);
      return findEndpoint(managed, merchantId, id.value);
    });
    if (!updated.ok) return updated;
    if (updated.value === undefined) return failed(endpointNotFound);
    return success({ body: { endpoint: endpointResponse(updated.value) }, outcome: 'ok' });
  });
}
