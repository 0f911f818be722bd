import type { AccountId } from './accounts/account.ts';
import type { BrandStore } from './accounts/brand.ts';
import type { ClientSecretStore } from './accounts/client-secrets.ts';
import type { Credentials } from './accounts/credentials.ts';
import type { StoreFailure } from './result.ts';
import type { WebhookStore } from './webhooks/webhook-store.ts';

/** Everything that a merchant manages. */
export type Managed = WebhookStore & ClientSecretStore & BrandStore;

/** The caller of a management operation: it has a client secret, or it is a person signed in to the console. */
export interface ManagementCaller extends Credentials {
  /**
   * The digest of the person's session, which is checked instead of the client secret. If absent, the secret is
   * checked.
   */
  readonly sessionDigest?: Uint8Array | undefined;
}

/**
 * The outcome of `perform`. `unauthenticated`: the caller's secret or session has ended, the account is disabled, or
 * the session does not have the role that a change needs.
 */
export type ManagementOutcome<Value> =
  | { readonly kind: 'done'; readonly value: Value }
  | { readonly kind: 'unauthenticated' }
  | StoreFailure;

/** Gives merchants access to what they manage. */
export interface MerchantManagement {
  /**
   * Performs work if the caller's secret is valid at this moment; other operations may accept a secret that was valid a
   * moment ago. Every change checks the secret again in its own statement and prevents its revocation until the change
   * is stored, so that nothing changes after a revocation. The same applies to a session, which also needs the role
   * `manage` for a change. The audit log records the changes under the client id, or under the name of the session.
   * Completes within `timeoutMs`.
   */
  perform<Value>(
    caller: ManagementCaller & { readonly merchantId: AccountId },
    work: (managed: Managed) => Promise<Value>,
    timeoutMs: number,
  ): Promise<ManagementOutcome<Value>>;
}
