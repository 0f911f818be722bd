import { CredentialsService } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import type { ClientSecret } from '@order-gateway/domain/accounts';
import { formatOptionalTime, formatTime } from '@order-gateway/domain/orders';
import { parseCompleteList } from '@order-gateway/domain/requests';
import { failed, success } from '@order-gateway/domain/result';
import type { Operation } from '../calls/operation.ts';
import { managementOperations, notFound, readId } from './management.ts';
import type { OperationDeps } from './service.ts';

const secretIdForm = /^[1-9]\d{0,14}$/;

export function credentialOperations(deps: Pick<OperationDeps, 'management'>): Operation[] {
  return managementOperations(deps, CredentialsService, {
    async createClientSecret(_members, { clientId, manage }) {
      return manage(async (managed) => {
        const added = await managed.addSecret(clientId, null);
        // The limit is the only other outcome: the account exists, because its caller has just been authenticated.
        if (added.kind !== 'added') return failed({ kind: 'too_many_client_secrets' });
        return success({ body: { secret: secretResponse(added, added.clientSecret) }, outcome: 'created' });
      });
    },

    async listClientSecrets(members, { clientId, manage }) {
      const parsed = parseCompleteList(members);
      if (!parsed.ok) return parsed;
      return manage(async (managed) => {
        const secrets = (await managed.listSecrets(clientId)) ?? [];
        return success({ body: { secrets: secrets.map((secret) => secretResponse(secret)) }, outcome: 'ok' });
      });
    },

    async revokeClientSecret(members, { clientId, manage }) {
      const id = readId(members, 'id', secretIdForm, 'client_secret');
      if (!id.ok) return id;
      return manage(async (managed) => {
        const { kind } = await managed.endSecret(clientId, Number(id.value), null, { keepsLast: true });
        const secrets = (await managed.listSecrets(clientId)) ?? [];
        const secret = secrets.find((secret) => `${secret.id}` === id.value);
        if (secret === undefined) return failed(notFound('client_secret'));
        if (kind === 'last') return failed({ kind: 'last_client_secret' });
        return success({
          body: { secret: secretResponse(secret) },
          outcome: kind === 'ended_already' ? 'replayed' : 'ok',
        });
      });
    },
  });
}

/** Builds the API's form of a client secret. It contains the secret itself only if the secret is new. */
export function secretResponse({ id, createdAt, endsAt }: ClientSecret, newSecret?: string) {
  return {
    id: `${id}`,
    created_at: formatTime(createdAt.getTime()),
    ends_at: formatOptionalTime(endsAt?.getTime()),
    client_secret: newSecret,
  };
}
