import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

export function pingWebhookEndpointOperation(
  deps: Pick<OperationDeps, 'management' | 'signingSecrets' | 'ping'>,
): Operation {
  const { signingSecrets, ping } = deps;
  return managementOperation(deps, WebhookService.method.pingWebhookEndpoint, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    const merchantId = caller.account.id;
    const found = await manage((managed) => findEndpoint(managed, merchantId, id.value));
    if (!found.ok) return found;
    if (found.value === undefined) return failed(endpointNotFound);
    const { url, signingSecret, previousSecret } = found.value.endpoint;
    const secret = signingSecrets?.decrypt(merchantId, signingSecret);
    if (secret === undefined) return failed({ kind: 'webhooks_not_configured' });
    const previous = previousSecret === null ? undefined : signingSecrets?.decrypt(merchantId, previousSecret);
    const sent = await ping(merchantId, url, previous === undefined ? [secret] : [secret, previous]);
    if (!sent.ok) return sent;
    const { status = 0, text } = sent.value;
    return success({ body: { delivered: status >= 200 && status < 300, result: text }, outcome: 'ok' });
  });
}
