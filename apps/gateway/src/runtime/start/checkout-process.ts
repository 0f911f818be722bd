import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Credentials } from '@order-gateway/domain/accounts';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { readCheckoutAccount, writeCheckoutAccount } from '@order-gateway/runtime/checkout-account';
import type { Logger } from '@order-gateway/runtime/logger';

const root = join(import.meta.dirname, '../../../../..');

/** Returns the checkout's account at this gateway. The first start creates it. */
async function findOrCreateAccount(url: string, dataDir: string): Promise<Credentials> {
  await using accounts = openAccountAdmin({ url, actor: 'start' });
  const stored = await readCheckoutAccount(dataDir);
  if (stored !== undefined && (await accounts.listSecrets(stored.clientId))) return stored;
  const credentials = await accounts.create('Checkout', 'checkout', { makesRefunds: true });
  await writeCheckoutAccount(dataDir, credentials);
  return credentials;
}

interface CheckoutProcess {
  readonly databaseUrl: string;
  readonly dataDir: string;
  readonly port: number;
  readonly gatewayUrl: string;
  readonly grpcUrl: string;
}

/**
 * Starts the checkout for a gateway with the embedded database, and waits until it is ready or `signal` is aborted. The
 * gateway works without it, so a checkout that ends is only reported. Returns the function that stops it.
 */
export async function startCheckoutProcess(
  { databaseUrl, dataDir, port, gatewayUrl, grpcUrl }: CheckoutProcess,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<() => Promise<void>> {
  const { clientId, clientSecret } = await findOrCreateAccount(databaseUrl, dataDir);
  const child = spawn(process.execPath, [join(root, 'apps/checkout/src/main.ts')], {
    // The checkout ends when this channel closes, which also happens if the gateway is killed.
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      CHECKOUT_PORT: `${port}`,
      BASE_URL: gatewayUrl,
      GATEWAY_GRPC_URL: grpcUrl,
      CHECKOUT_CLIENT_ID: clientId,
      CHECKOUT_CLIENT_SECRET: clientSecret,
    },
  });
  let isStopping = false;
  const exited = once(child, 'exit').then(([code]) => {
    if (!isStopping) logger.warn({ code }, 'the checkout ended: orders are created, but cannot be paid through it');
  });
  const ready = Promise.withResolvers<void>();
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    if (line.includes('"msg":"checkout ready"')) ready.resolve();
    process.stdout.write(`${line}\n`);
  });
  await Promise.race([ready.promise, exited, once(signal, 'abort')]);
  return async () => {
    isStopping = true;
    if (child.connected) child.disconnect();
    await exited;
  };
}
