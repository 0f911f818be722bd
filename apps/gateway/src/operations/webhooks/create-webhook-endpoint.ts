import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { parseEndpoint } from '@order-gateway/domain/requests/parse-webhook-endpoint';
import { failed, success } from '@order-gateway/domain/result';
import { newSigningSecret } from '../../secrets/signing-secrets.ts';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { urlFailure } from './url-rule.ts';
import { endpointResponse, findEndpoint } from './webhook-endpoint.ts';

export function createWebhookEndpointOperation(
  deps: Pick<OperationDeps, 'management' | 'signingSecrets' | 'webhookAddresses'>,
): Operation {
  const { signingSecrets, webhookAddresses } = deps;
  return managementOperation(deps, WebhookService.method.createWebhookEndpoint, async (members, caller, manage) => {
    const { url: sentUrl, event_types } = members;
    const parsed = parseEndpoint({ url: sentUrl, event_types }, true);
    if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
    const { url = '', eventTypes } = parsed.value;
    const notAllowed = urlFailure(url, webhookAddresses);
    if (notAllowed !== undefined) return failed(notAllowed);
    if (signingSecrets === undefined) return failed({ kind: 'webhooks_not_configured' });
    const merchantId = caller.account.id;
    const { secret, stored } = newSigningSecret(signingSecrets, merchantId);
    const created = await manage(async (managed) => {
      const endpointId = await managed.create(merchantId, { url, eventTypes, signingSecret: stored });
      return endpointId === undefined ? undefined : findEndpoint(managed, merchantId, endpointId);
    });
    if (!created.ok) return created;
    if (created.value === undefined) return failed({ kind: 'too_many_endpoints' });
    return success({ body: { endpoint: endpointResponse(created.value, secret) }, outcome: 'created' });
  });
}
