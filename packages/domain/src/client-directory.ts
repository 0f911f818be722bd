import type { Client } from './merchant.ts';

/** The answer to the question who a client id belongs to. */
export type ClientLookup =
  | { readonly kind: 'found'; readonly client: Client }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'overloaded' };

/** Where clients are looked up. */
export interface ClientDirectory {
  /** The merchant and the live secrets behind a client id, as they are now. Rejects only for bugs. */
  findClient(clientId: string): Promise<ClientLookup>;
}
