import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { createEncryption } from '@order-gateway/runtime/encryption';
import pino from 'pino';
import { afterAll, beforeAll } from 'vitest';
import { type CheckoutOptions, openCheckout } from '../../src/checkout.ts';
import { newId } from '../../src/store/ids.ts';
import { checkoutMigrations } from '../../src/store/migrate.ts';
import { openStore } from '../../src/store/store.ts';
import { startPatientGateway } from './gateway-process.ts';

/**
 * A gateway with a merchant, and a checkout that takes the merchant's payments. The checkout has only the privileges of
 * its role. `store` has those of the owner of the schema.
 */
export interface World extends Awaited<ReturnType<typeof openCheckout>> {
  /** The database, as its owner. */
  readonly ownerUrl: string;
  readonly gatewayUrl: string;
  readonly merchant: Credentials;
  readonly options: CheckoutOptions;
  /** Creates an order of the merchant. Returns the order's token. */
  createOrder(orderId: string, overrides?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Returns the order record. */
  findOrder(orderId: string): Promise<Readonly<Record<string, unknown>>>;
  /** Makes a call of the merchant's own system, which changes something. */
  call(method: string, path: string, body?: object): Promise<Response>;
  /** Connects the merchant with an account. */
  connect(provider: string, account: string, secrets: Readonly<Record<string, string>>): Promise<void>;
  /** Sends a form as a browser on a page of the checkout does, and follows no redirect. */
  post(path: string, form?: Readonly<Record<string, string>>): Promise<Response>;
  /** Loads a page, and follows no redirect. */
  get(path: string): Promise<Response>;
}

const role = 'order_gateway_checkout';

/** Creates the role of the checkout as database.sql does, unless another test has created it. */
const createRole = `do $$ begin
  create role ${role} login password '${role}';
exception when duplicate_object or unique_violation then null;
end $$`;

export const testSecretsKey = new Uint8Array(32).fill(9);

/** Provides a world for the tests of one file. `send` takes the place of a provider. */
export function useWorld(mode: 'live' | 'test' = 'test', send?: CheckoutOptions['send']): World {
  const world = {} as World;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    const database = await createMigratedDatabase();
    closing.push(database.drop);
    await runQuery(database.url, createRole);
    await migrateDatabase(database.url, undefined, checkoutMigrations);
    const accounts = openAccountAdmin({ url: database.url, patience: testPatience });
    const merchant = await accounts.create('Test Shop', mode);
    const credentials = await accounts.create('Checkout', 'checkout', { makesRefunds: true });
    await accounts.close();
    const gateway = await startPatientGateway(database.url);
    closing.push(gateway.stop);
    const options: CheckoutOptions = {
      host: '127.0.0.1',
      port: 0,
      databaseUrl: Object.assign(new URL(database.url), { username: role, password: role }).href,
      gatewayUrl: gateway.url,
      gatewayGrpcUrl: gateway.grpcUrl,
      credentials,
      secretsKeys: [testSecretsKey],
      patience: testPatience,
      ...(send && { send }),
    };
    const checkout = await openCheckout(options, pino({ level: 'silent' }));
    closing.push(checkout.close);
    const store = openStore({ url: database.url, patience: testPatience });
    closing.push(store.close);
    const headers = { 'x-client-id': merchant.clientId, 'x-client-secret': merchant.clientSecret };
    const call: World['call'] = (method, path, body) =>
      fetch(`${gateway.url}${path}`, {
        method,
        headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
    const url = `http://127.0.0.1:${checkout.port}`;
    Object.assign(world, checkout, {
      ownerUrl: database.url,
      store,
      gatewayUrl: gateway.url,
      merchant,
      call,
      options,
      async createOrder(orderId: string, overrides: Readonly<Record<string, unknown>> = {}) {
        const response = await call('POST', '/order', { ...validOrderInput({ order_id: orderId }), ...overrides });
        const { order_token } = Object(await response.json());
        if (typeof order_token !== 'string') throw new Error(`the order ${orderId} was not created`);
        return order_token;
      },
      findOrder: async (orderId: string) => (await call('GET', `/order/${orderId}`)).json(),
      async connect(provider: string, account: string, secrets: Readonly<Record<string, string>>) {
        const connectionId = newId('con');
        const encryption = createEncryption<string>([testSecretsKey]);
        const encrypted = encryption.encrypt(connectionId, Buffer.from(JSON.stringify(secrets)));
        const { clientId: merchantId } = merchant;
        await store.connect({ connectionId, merchantId, provider, mode, account, secrets: encrypted }, 'tester');
      },
      post: (path: string, form: Readonly<Record<string, string>> = {}) =>
        fetch(`${url}${path}`, {
          method: 'POST',
          headers: { 'sec-fetch-site': 'same-origin' },
          body: new URLSearchParams(form),
          redirect: 'manual',
        }),
      get: (path: string) => fetch(`${url}${path}`, { redirect: 'manual' }),
    });
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });
  return world;
}
