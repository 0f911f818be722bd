import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { newSigningSecret } from '../../secrets/signing-secrets.ts';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { endpointNotFound, endpointResponse, findEndpoint, readEndpointId } from './webhook-endpoint.ts';

export function rotateWebhookSecretOperation(deps: Pick<OperationDeps, 'management' | 'signingSecrets'>): Operation {
  const { signingSecrets } = deps;
  return managementOperation(deps, WebhookService.method.rotateWebhookSecret, async (members, caller, manage) => {
    const id = readEndpointId(members);
    if (!id.ok) return id;
    if (signingSecrets === undefined) return failed({ kind: 'webhooks_not_configured' });
    const merchantId = caller.account.id;
    const { secret, stored } = newSigningSecret(signingSecrets, merchantId);
    const rotated = await manage(async (managed) => {
      const isRotated = await managed.rotate(merchantId, id.value, stored);
      return isRotated ? findEndpoint(managed, merchantId, id.value) : undefined;
    });
    if (!rotated.ok) return rotated;
    if (rotated.value === undefined) return failed(endpointNotFound);
    return success({ body: { endpoint: endpointResponse(rotated.value, secret) }, outcome: 'ok' });
  });
}
