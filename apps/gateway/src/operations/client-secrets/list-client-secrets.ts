import { CredentialsService } from '@gateway/contract/gateway/v1/credentials_service_pb';
import { success } from '@gateway/domain/result';
import { secretResponse } from '../../management/client-secrets.ts';
import { managementOperation } from '../../management/manage.ts';
import type { Operation, OperationDeps } from '../../orders/operation.ts';

export function listClientSecretsOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, CredentialsService.method.listClientSecrets, async (_members, caller, manage) => {
    const listed = await manage((managed) => managed.listSecrets(caller.clientId));
    if (!listed.ok) return listed;
    const secrets = (listed.value ?? []).map((secret) => secretResponse(secret));
    return success({ body: { secrets }, outcome: 'ok' });
  });
}
