import type { Store } from '../store/store.ts';
import { createDemoProvider } from './demo/demo.ts';
import type { Provider } from './provider.ts';

/** Creates all providers, in the order in which pages offer them. */
export function createProviders(store: Store, baseUrl: () => string): ReadonlyMap<string, Provider> {
  const providers = [createDemoProvider(store, baseUrl)];
  return new Map(providers.map((provider) => [provider.name, provider]));
}
