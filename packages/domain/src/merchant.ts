import { fieldRules } from './field-rules.ts';

declare const merchantIdBrand: unique symbol;

/** The gateway's internal number of a merchant: positive, at most 2^53 - 1. Never sent to clients. */
export type MerchantId = number & { readonly [merchantIdBrand]: true };

/**
 * How a merchant's checksums are treated. `versioned`: one that begins with `v1=` must verify, any other is stored unchecked.
 * `required`: only a verified `v1=` checksum is accepted.
 */
export const checksumModes = ['versioned', 'required'] as const;

/** One of {@link checksumModes}. */
export type ChecksumMode = (typeof checksumModes)[number];

/** The settings of a merchant that a request needs. */
export interface Merchant {
  readonly id: MerchantId;
  readonly name: string;
  readonly checksumMode: ChecksumMode;
}

/** A client secret as it is stored. */
export interface StoredSecret {
  /** SHA-256 of the secret, 32 bytes. */
  readonly hash: Uint8Array;
  /** When it expires, in milliseconds since 1970-01-01 UTC; `null` if it does not expire. */
  readonly endsAtMs: number | null;
}

/** A merchant with the secrets that are valid for its client id. */
export interface Client {
  readonly merchant: Merchant;
  readonly secrets: readonly StoredSecret[];
}

/** The result of looking up a client id. */
export type ClientLookup =
  | { readonly kind: 'found'; readonly client: Client }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'overloaded' };

/** Looks up the merchant that a client id belongs to. */
export interface MerchantDirectory {
  /** Returns the client id's merchant and live secrets as they are now. Rejects only because of a bug. */
  findClient(clientId: string): Promise<ClientLookup>;
}

/** The rule of a merchant's name: the same as that of a customer's. */
export const merchantNameRule = fieldRules.customer_name;
