import { textRule } from '../requests/field-rules.ts';

declare const accountIdBrand: unique symbol;

/** The gateway's internal number for an account (a merchant or a checkout system): positive, at most 2^53 - 1. */
export type AccountId = number & { readonly [accountIdBrand]: true };

/**
 * How a merchant's checksums are treated. `versioned`: a checksum that begins with `v1=` is verified, and any other is
 * stored unchecked. `required`: only a verified `v1=` checksum is accepted.
 */
export const checksumModes = ['versioned', 'required'] as const;

/** One of {@link checksumModes}. */
export type ChecksumMode = (typeof checksumModes)[number];

/** Whether a merchant's orders move money. Set when the merchant is created, and never changed. */
export const merchantModes = ['live', 'test'] as const;

/** One of {@link merchantModes}. */
export type MerchantMode = (typeof merchantModes)[number];

/** The settings of a merchant that a request needs. */
export interface Merchant {
  readonly kind: 'merchant';
  readonly id: AccountId;
  readonly name: string;
  readonly checksumMode: ChecksumMode;
  readonly mode: MerchantMode;
  /** The lifetime in seconds of an order sent without `order_expires_at`; `null`: it never expires. */
  readonly defaultLifetimeSeconds: number | null;
  /** Calls per second in each process; `null`: the limit configured for all accounts. */
  readonly rateLimit: number | null;
}

/** A checkout system: records the payments of all merchants and owns no orders. */
export interface CheckoutSystem {
  readonly kind: 'checkout';
  /** Drawn from the same sequence as the ids of merchants. */
  readonly id: AccountId;
  readonly name: string;
  /** For how many days after an order's expiry it can report a payment that was made in time. */
  readonly lateDays: number;
  /** Whether it gets the customer's data once it has claimed an order. */
  readonly getsCustomerData: boolean;
}

/** The limits of `CheckoutSystem.lateDays`. */
export const lateDays = { min: 1, max: 30, byDefault: 1 } as const;

/** The account that a client id belongs to. */
export type Account = Merchant | CheckoutSystem;

/** A client secret as it is stored. */
export interface StoredSecret {
  /** SHA-256 of the secret, 32 bytes. */
  readonly hash: Uint8Array;
  /** When it expires, in milliseconds since 1970-01-01 UTC; `null` if it does not expire. */
  readonly endsAtMs: number | null;
}

/** An account with the secrets that are valid for its client id. */
export interface StoredAccount {
  readonly account: Account;
  readonly secrets: readonly StoredSecret[];
}

/** The result of looking up a client id. */
export type AccountLookup =
  | { readonly kind: 'found'; readonly stored: StoredAccount }
  | { readonly kind: 'unknown' | 'unavailable' | 'overloaded' };

/** Looks up the account that a client id belongs to. */
export interface AccountDirectory {
  /** Returns the current account and live secrets of a client id. Rejects only because of a bug. */
  findAccount(clientId: string): Promise<AccountLookup>;
}

/** The rule for the name of a merchant, a checkout system, or a person in the console or the audit log. */
export const merchantNameRule = textRule(255);
