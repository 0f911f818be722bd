import { AsyncLocalStorage } from 'node:async_hooks';
import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import type { Fetch } from './provider.ts';

/** Above this number of calls per second to one account, work in the background waits. */
const callsPerSecond = 10;

/** Sends requests over the network. Redirects of providers' APIs are not followed. */
export const network: Fetch = (url, init) => fetch(url, { ...init, redirect: 'error' });

const background = new AsyncLocalStorage<true>();

/** Runs work for which no customer waits: its calls of providers wait while an account gets too many. */
export function inBackground<Result>(work: () => Result): Result {
  return background.run(true, work);
}

/**
 * Returns a function that sends requests, of which those of {@link inBackground} wait: with all others, an account gets
 * at most {@link callsPerSecond} calls on average. The key in the header `authorization` identifies the account. Calls
 * for which a customer waits are counted, but never wait.
 */
export function paced(send: Fetch): Fetch {
  const count = createTokenBuckets<string>(() => performance.now());
  return async (url, init) => {
    const account = new Headers(init.headers).get('authorization') ?? '';
    for (;;) {
      const waitMs = count(account, callsPerSecond);
      if (waitMs === undefined || background.getStore() === undefined) return send(url, init);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  };
}
