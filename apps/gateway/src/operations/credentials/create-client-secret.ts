import { CredentialsService } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import { failed, success } from '@order-gateway/domain/result';
import { managementOperation } from '../management.ts';
import type { Operation, OperationDeps } from '../operation.ts';
import { secretResponse } from './client-secret.ts';

export function createClientSecretOperation(deps: Pick<OperationDeps, 'management'>): Operation {
  return managementOperation(deps, CredentialsService.method.createClientSecret, async (_members, caller, manage) => {
    const added = await manage((managed) => managed.addSecret(caller.clientId, null));
    if (!added.ok) return added;
    // The account exists: it has just sent valid credentials.
    if (added.value.kind !== 'added') return failed({ kind: 'too_many_client_secrets' });
    return success({ body: { secret: secretResponse(added.value, added.value.clientSecret) }, outcome: 'created' });
  });
}
