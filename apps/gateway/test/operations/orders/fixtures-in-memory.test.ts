import {
  type Account,
  type AccountId,
  type CheckoutSystem,
  createClientId,
  createClientSecret,
} from '@order-gateway/domain/accounts';
import { success } from '@order-gateway/domain/result';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { loadFixtures, type MerchantName } from '@order-gateway/fixtures';
import { differences, type Merchants, sendFixture } from '@order-gateway/fixtures/replay';
import { type CallResponse, type Client, openClients } from '@order-gateway/fixtures/wire';
import { beforeAll, expect, test } from 'vitest';
import { type FixedDeps, fixedDeps, merchant } from '../../helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../helpers/memory-logger.ts';
import { httpServerOf } from '../../helpers/servers.ts';

// The interleaving and simulation tests of the operations use the in-memory store. It must pass the same fixtures as
// PostgreSQL.

const accountOf = (id: number, changes: object = {}): Account => ({ ...merchant, id: id as AccountId, ...changes });

const checkoutOf = (id: number, name: string): CheckoutSystem => ({
  ...({ kind: 'checkout', id: id as AccountId, name } as const),
  lateDays: 1,
  getsCustomerData: false,
});

/** Accounts of fixtures that need no management, and that don't wait for the end of a default lifetime. */
const accounts: Partial<Record<MerchantName, Account>> = {
  first: accountOf(1),
  second: accountOf(2),
  strict: accountOf(3, { checksumMode: 'required' }),
  checkout: checkoutOf(4, 'Checkout'),
  second_checkout: { ...checkoutOf(5, 'Second Checkout'), getsCustomerData: true },
};
const bytesOf = (id: number) => (count: number) => new Uint8Array(count).fill(id);
const callers = Object.entries(accounts).map(([name, account]) => ({
  name,
  account,
  clientId: createClientId(bytesOf(account.id)),
  clientSecret: createClientSecret(bytesOf(account.id)),
}));
const merchants = Object.fromEntries(callers.map((caller) => [caller.name, caller])) as unknown as Merchants;

const { fixtures, validOrder } = await loadFixtures();

/** The operations whose data is in the order store. */
const folders =
  /^(?:(?:create|get|cancel)-order|list-(?:orders|events)|(?:start|end|record)-payment|record-(?:manual-payment|refund|dispute)|create-refund|list-refunds|resolve-payment-link)$/;

const supported = fixtures.filter(
  ({ folder, calls, merchants: needed }) =>
    folders.test(folder) &&
    needed.isSubsetOf(new Set(Object.keys(merchants))) &&
    calls.every(({ via, wait_until }) => via !== 'grpc' && wait_until === undefined),
);

let clients: Record<string, Client>;
beforeAll(async () => {
  const deps: FixedDeps = {
    ...fixedDeps(createMemoryLogger().logger),
    store: createInMemoryOrderStore(undefined, undefined, undefined, (id) => id !== accounts.second_checkout?.id),
    now: Date.now,
    randomBytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)),
    async authenticate({ clientId, clientSecret }) {
      const caller = callers.find((known) => known.clientId === clientId && known.clientSecret === clientSecret);
      return caller === undefined ? { ok: false, failure: { kind: 'unauthenticated' } } : success(caller.account);
    },
  };
  const server = httpServerOf(deps);
  const address = `127.0.0.1:${await server.listen(0, '127.0.0.1')}`;
  clients = openClients({ httpUrl: `http://${address}`, grpcAddress: address });
  return async () => {
    for (const client of Object.values(clients)) client.close();
    await server.close();
  };
});

test.each(supported.map((fixture) => [`${fixture.folder}/${fixture.file}`, fixture] as const))(
  'the in-memory store passes the fixture %s',
  async (file, fixture) => {
    const target = { clients, merchants, validOrder, orderId: `${file.replace('/', '-')}.` };
    let first: CallResponse | undefined;
    for await (const { number, sent, expect: expected, response } of sendFixture(fixture, 'connect', target)) {
      const context = { sent, first, secrets: [], baseUrl: 'http://localhost', nowMs: Date.now() };
      expect(differences(expected, response, context), `call ${number}`).toEqual([]);
      first ??= response;
    }
  },
);
