import type { BrandStore } from './accounts/brand.ts';
import type { ClientSecretStore } from './accounts/client-secrets.ts';
import type { Credentials } from './accounts/credentials.ts';
import type { StoreFailure } from './result.ts';
import type { WebhookStore } from './webhooks/webhook-store.ts';

/** What a merchant manages. */
export type Managed = WebhookStore & ClientSecretStore & BrandStore;

/** Who manages: a caller with a client secret, or a person who is signed in to the console. */
export interface ManagementCaller extends Credentials {
  /** The digest of the person's session, which counts instead of the client secret; absent: the client secret counts. */
  readonly sessionDigest?: Uint8Array | undefined;
}

/** The outcome of a piece of work. `unauthenticated`: the caller's secret has ended, or its account is disabled. */
export type ManagementOutcome<Value> =
  | { readonly kind: 'done'; readonly value: Value }
  | { readonly kind: 'unauthenticated' }
  | StoreFailure;

/** What merchants manage themselves. */
export interface MerchantManagement {
  /**
   * Performs work if the caller's secret works now, unlike other calls, which may use credentials that were valid a
   * moment ago. Every change checks the secret again in its own statement and prevents its revocation until the change
   * is stored, so that nothing is changed after a revocation. The same holds for a session, which changes something
   * only with the role `manage`. The audit log records the changes under the client id, or under the name of the
   * session. Completes within `timeoutMs`.
   */
  perform<Value>(
    caller: ManagementCaller,
    work: (managed: Managed) => Promise<Value>,
    timeoutMs: number,
  ): Promise<ManagementOutcome<Value>>;
}
