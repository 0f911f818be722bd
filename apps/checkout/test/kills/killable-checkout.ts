// A checkout as a separate process, whose requests to Stripe go to a stand-in. The tests kill it.
import type { Credentials } from '@order-gateway/domain/accounts';
import pino from 'pino';
import { type CheckoutOptions, openCheckout } from '../../src/checkout.ts';

/** The settings that the process gets as JSON, in its only argument. */
export interface KillableOptions extends Omit<CheckoutOptions, 'send' | 'secretsKeys'> {
  readonly credentials: Credentials;
  readonly secretsKey: string;
  /** The address that takes the place of Stripe's. */
  readonly standInUrl: string;
}

if (import.meta.main) {
  const { secretsKey, standInUrl, ...options }: KillableOptions = JSON.parse(process.argv[2] ?? '{}');
  const send = (url: string, init: RequestInit) => {
    const { pathname, search } = new URL(url);
    return fetch(`${standInUrl}${pathname}${search}`, init);
  };
  const secretsKeys = [Uint8Array.fromBase64(secretsKey)] as const;
  const { port } = await openCheckout({ ...options, secretsKeys, send }, pino({ level: 'silent' }));
  process.stdout.write(`${port}\n`);
}
