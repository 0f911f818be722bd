import type { Client } from './merchant.ts';

/** The result of looking up a client id. */
export type ClientLookup =
  | { readonly kind: 'found'; readonly client: Client }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'overloaded' };

/** Looks up the merchant that a client id belongs to. */
export interface ClientDirectory {
  /** Returns the client id's merchant and live secrets as they are now. Rejects only because of a bug. */
  findClient(clientId: string): Promise<ClientLookup>;
}
