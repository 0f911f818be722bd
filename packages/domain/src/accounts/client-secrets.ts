import type { StoredTime } from '../requests/iso-time.ts';

/** A client secret without its value, which is shown only once. */
export interface ClientSecret {
  readonly id: number;
  readonly createdAt: StoredTime;
  /** `null`: it never expires. */
  readonly endsAt: StoredTime | null;
}

/** The client secrets of an account. Every change is in the audit log. */
export interface ClientSecretStore {
  /** Adds a secret that ends at the given time or never, unless the account already has `liveSecretsMax` that work. */
  addSecret(
    clientId: string,
    endsAt: StoredTime | null,
  ): Promise<
    | (ClientSecret & { readonly kind: 'added'; readonly clientSecret: string })
    | { readonly kind: 'too_many' | 'unknown_account' }
  >;

  /** Returns the secrets in the order of their creation; `undefined` if there is no such account. */
  listSecrets(clientId: string): Promise<readonly ClientSecret[] | undefined>;

  /**
   * Ends a secret now or at the given time. An end is only ever brought forward: a secret that already ends sooner, or
   * has ended, stays as it is. With `keepsLast`, the only secret that works is not ended.
   */
  endSecret(
    clientId: string,
    secretId: number,
    endsAt: StoredTime | null,
    options?: { readonly keepsLast?: boolean },
  ): Promise<
    | { readonly kind: 'ends'; readonly at: StoredTime }
    | { readonly kind: 'last' | 'ended_already' | 'unknown_secret' | 'unknown_account' }
  >;
}
