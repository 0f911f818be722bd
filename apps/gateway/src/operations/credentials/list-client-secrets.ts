import { CredentialsService } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import { parseCompleteList } from '@order-gateway/domain/requests/list-parameters';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { secretResponse } from './client-secret.ts';

export function listClientSecretsOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, CredentialsService.method.listClientSecrets, async (members, caller, manage) => {
    const parsed = parseCompleteList(members);
    if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
    const listed = await manage((managed) => managed.listSecrets(caller.clientId));
    if (!listed.ok) return listed;
    const secrets = (listed.value ?? []).map((secret) => secretResponse(secret));
    return success({ body: { secrets }, outcome: 'ok' });
  });
}
