import { CredentialsService } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation, notFound, readId } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { secretIdForm, secretResponse } from './client-secret.ts';

export function revokeClientSecretOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, CredentialsService.method.revokeClientSecret, async (members, caller, manage) => {
    const id = readId(members, 'id', secretIdForm, 'client_secret');
    if (!id.ok) return id;
    const { clientId } = caller;
    const revoked = await manage(async (managed) => {
      const { kind } = await managed.endSecret(clientId, Number(id.value), null, { keepsLast: true });
      const secrets = (await managed.listSecrets(clientId)) ?? [];
      return { kind, secret: secrets.find((secret) => `${secret.id}` === id.value) };
    });
    if (!revoked.ok) return revoked;
    const { kind, secret } = revoked.value;
    if (secret === undefined) return failed(notFound('client_secret'));
    if (kind === 'last') return failed({ kind: 'last_client_secret' });
    return success({
      body: { secret: secretResponse(secret) },
      outcome: kind === 'ended_already' ? 'replayed' : 'ok',
    });
  });
}
