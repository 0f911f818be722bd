import type { DescMethodUnary } from '@bufbuild/protobuf';
import { failureDetail } from '@order-gateway/contract/errors';
import { jsonRouteOf } from '@order-gateway/contract/operations';
import type { Failure } from '@order-gateway/domain/failure';
import { openOperatorManagement } from '@order-gateway/postgres/merchant-management';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import { StartError, UsageError } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { createPing, createSender } from '../background/send.ts';
import type { Members } from '../calls/operation.ts';
import { webhookLimits } from '../limits.ts';
import { brandOperations } from '../operations/brands.ts';
import { createCheckLogo } from '../operations/logos/check-logo.ts';
import type { OperationDeps } from '../operations/service.ts';
import { webhookOperations } from '../operations/webhooks.ts';
import { createSigningSecrets, reencryptAll } from '../runtime/secrets/signing-secrets.ts';
import { baseUrlOf, unknownAccount, withDatabase } from './with-database.ts';

/** A command has more time than a call, because a person waits for it and the machine may be busy. */
const commandTimeoutMs = 60_000;

/** Performs operations of the API for merchants, as an operator. */
export interface Operator {
  /**
   * Performs an operation for a merchant, and returns the same body as the JSON API. Rejects if there is no such
   * merchant, or with the API's message if the operation fails.
   */
  call<Response>(method: DescMethodUnary, clientId: string, members?: Members): Promise<Response>;
  /**
   * Re-encrypts the signing secrets of all merchants. Returns the number of endpoints that were re-encrypted, and the
   * total.
   */
  reencrypt(): Promise<{ readonly count: number; readonly total: number }>;
}

export type OpenOperator = typeof withOperator;

/** Opens an operator, passes it to `work`, and closes it afterwards. `actor` is recorded in the audit log. */
export function withOperator(work: (operator: Operator) => Promise<void>, actor?: string): Promise<void> {
  return withDatabase(async (url, config) => {
    const { webhookAddresses } = config;
    const keys = await findSecretsKeys(config);
    const baseUrl = baseUrlOf(config);
    const signingSecrets = keys && createSigningSecrets(keys);
    await using operator = openOperator(url, { signingSecrets, webhookAddresses, baseUrl: () => baseUrl }, actor);
    await work(operator);
  });
}

/**
 * Opens an operator on a database. It performs the same operations with which merchants manage their own endpoints and
 * brands.
 */
export function openOperator(
  url: string,
  settings: Pick<OperationDeps, 'signingSecrets' | 'webhookAddresses' | 'baseUrl'>,
  actor?: string,
): Operator & AsyncDisposable {
  const management = openOperatorManagement({ url, actor });
  const sender = createSender({
    allowedAddresses: settings.webhookAddresses,
    timeoutMs: webhookLimits.pingTimeoutMs,
  });
  const deps = { ...settings, management, ping: createPing(sender, Date.now), checkLogo: createCheckLogo() };
  const operations = [...webhookOperations(deps), ...brandOperations(deps)];
  return {
    async call<Response>(method: DescMethodUnary, clientId: string, members: Members = {}): Promise<Response> {
      const account = await management.findAccount(clientId);
      if (account?.kind !== 'merchant') throw unknownAccount(clientId);
      const reply = await operations
        .find((operation) => operation.method === method)
        ?.handle(members, {
          account,
          clientId,
          clientSecret: '',
          isStrict: false,
          waitMs: 0,
          timeLeftMs: () => commandTimeoutMs,
          concerns() {},
          pause: (wait) => wait(new AbortController().signal),
        });
      if (reply === undefined) throw new Error(`no operation for merchants: ${method.name}`);
      if (!reply.ok) throw commandError(reply.failure);
      const { responseField } = jsonRouteOf(method) ?? {};
      const body: Readonly<Record<string, unknown>> = { ...reply.value.body };
      return (responseField === undefined ? body : body[responseField]) as Response;
    },
    async reencrypt() {
      if (settings.signingSecrets === undefined) throw commandError({ kind: 'webhooks_not_configured' });
      await using endpoints = openWebhookEndpoints({ url, actor });
      return await reencryptAll(endpoints, settings.signingSecrets);
    },
    async [Symbol.asyncDispose]() {
      sender.close();
      await management.close();
    },
  };
}

/**
 * Converts a failure of the API to the error of a command. Its message adds the steps that only an operator can take.
 */
function commandError(failure: Failure): Error {
  switch (failure.kind) {
    case 'invalid_request':
      return new UsageError(`${failureDetail(failure)}.`);
    case 'webhook_url_not_allowed':
      return new UsageError(`${failureDetail(failure)} With WEBHOOK_ALLOW_PRIVATE=1, any address is allowed.`);
    case 'webhooks_not_configured':
      return new StartError('Set SECRETS_KEY to 32 random bytes in base64, or to the key that encrypted the secrets.');
    default:
      return new StartError(`The API rejects this operation for the merchant: ${failureDetail(failure)}`);
  }
}
