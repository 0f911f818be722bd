import type { StoredTime } from '../requests/iso-time.ts';

/** A client secret without its value, which is shown only once. */
export interface ClientSecret {
  readonly id: number;
  readonly createdAt: StoredTime;
  /** `null`: it never expires. */
  readonly endsAt: StoredTime | null;
}

/** The client secrets of an account. The audit log records every change. */
export interface ClientSecretStore {
  /**
   * Adds a secret that expires at the given time or never, unless the account already has `liveSecretsMax` live
   * secrets.
   */
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
   * Revokes a secret at the given time, or now if the time is `null`. It never postpones the expiry: a secret that
   * expires earlier, or has expired, stays as it is. With `keepsLast`, it does not revoke the only live secret.
   */
  endSecret(
    clientId: string,
    secretId: number,
    endsAt: StoredTime | null,
    options?: { readonly keepsLast?: boolean },
  ): Promise<
    | { readonly kind: 'ends'; readonly endsAt: StoredTime }
    | { readonly kind: 'last' | 'ended_already' | 'unknown_secret' | 'unknown_account' }
  >;
}
