import type { Store } from '../store/store.ts';
import { createDemoProvider } from './demo/demo.ts';
import { createMollieProvider } from './mollie/mollie.ts';
import { network, paced } from './paced.ts';
import type { Fetch, Offering, Provider } from './provider.ts';
import { createStripeProvider } from './stripe/stripe.ts';
import { tracedCalls } from './traced-calls.ts';
import { transfer } from './transfer/transfer.ts';

/** Creates all providers, in the order in which pages offer them. `send` replaces the network. */
export function createProviders(
  store: Store,
  { baseUrl, send = network }: { readonly baseUrl: () => string; readonly send?: Fetch | undefined },
): ReadonlyMap<string, Provider> {
  const pacedSend = paced(tracedCalls(send));
  const providers = [
    createStripeProvider(pacedSend),
    createMollieProvider(pacedSend),
    createDemoProvider(store, baseUrl),
  ];
  return new Map(providers.map((provider) => [provider.name, provider]));
}

/** Returns all ways to pay: those with a provider, and transfers, which have none. */
export function offeringsOf(providers: ReadonlyMap<string, Provider>): ReadonlyMap<string, Offering> {
  return new Map([...providers, [transfer.name, transfer]]);
}
