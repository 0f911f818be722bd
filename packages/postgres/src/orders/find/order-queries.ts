import type { AccountId, StoredLogo } from '@order-gateway/domain/accounts';
import { merchantIdOf, type OrderToken } from '@order-gateway/domain/links';
import type {
  CheckoutPayment,
  FindOutcome,
  LinkedOrder,
  LinkLookup,
  OrderStore,
  PaymentLookup,
} from '@order-gateway/domain/orders';
import { and, desc, eq, isNotNull, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { brandOfMerchant } from '../../accounts/brands.ts';
import { createBatchQueue } from '../../batches/batch-queue.ts';
import {
  arrayLiteral,
  type Closable,
  type DatabaseClient,
  type DatabaseOptions,
  type MerchantServer,
  openClient,
  plansEveryRun,
} from '../../connections/client.ts';
import { queueLimits } from '../../queue-limits.ts';
import { accounts, brands, orders, payments, type RefusedPaymentJson, refusedPayments } from '../../schema.ts';
import { orderOf, type ReadRow, refusedPaymentOf } from '../order-rows.ts';
import { type ExpireOrder, type Unstored, unlessUnstored, withExpiryStored } from './expired-orders.ts';
import { inStatements, prepareFind, prepareFindBy } from './order-keys.ts';
import { prepareReturnSecrets, returnSecretsByMerchant } from './return-secrets.ts';

/** How long a page may show cached data of its merchant. Reading the data takes a fifth of the time of a page. */
const merchantCachedMs = 500;
const merchantsCachedMax = 1_000;

/** The part of an order store that finds single orders. */
export interface OrderQueries
  extends Pick<
      OrderStore,
      'findByOrderId' | 'findByServiceOrderId' | 'findByPaymentId' | 'findByToken' | 'findForPage' | 'findForPayment'
    >,
    Closable {
  /** Finds a logo by its digest, on the connection for pages. */
  findLogo(digest: string, timeoutMs: number): Promise<FindOutcome<{ readonly logo: StoredLogo }>>;
}

type Key = 'order_id' | 'serviceOrderId' | 'orderToken' | 'paymentId';

type LookupClient = DatabaseClient<ReturnType<typeof prepareStatements>>;

type MerchantRow = Awaited<ReturnType<typeof readMerchants>>[number];

type FindMerchants = (client: LookupClient, ids: readonly AccountId[]) => Promise<readonly MerchantRow[]>;

/** An order, and its merchant if the order was looked up by its token. */
type FoundOrder = FindOutcome<Pick<LinkedOrder, 'order'> & Partial<Pick<LinkedOrder, 'merchant'>>>;

interface Lookup {
  readonly by: Key;
  readonly merchantId: AccountId;
  readonly value: string;
}

/** The parameters of {@link OrderQueries.findForPayment} except the time limit. */
interface PaymentKey extends CheckoutPayment {
  readonly token: OrderToken;
}

/** Opens the part of an order store that finds single orders. */
export function openOrderQueries(options: DatabaseOptions, expireOrder: ExpireOrder): OrderQueries {
  const clients = openClients(options, 'lookups');
  const queue = createLookups(options, 'lookups', clients, readMerchants);
  const pageClients = openClients(options, 'pages');
  const pages = createLookups(options, 'pages', pageClients, createMerchantCache());
  const logos = createBatchQueue<LookupClient, string, FindOutcome<{ readonly logo: StoredLogo }>>({
    ...options,
    name: 'logos',
    clients: withoutClose(pageClients),
    ...queueLimits.logos,
    run: async (client, digests) => Promise.all(digests.map((digest) => findLogo(client, digest))),
  });
  const payments = createBatchQueue<LookupClient, PaymentKey, PaymentLookup | Unstored<PaymentLookup>>({
    ...options,
    name: 'payments',
    clients: withoutClose(clients),
    waitingMax: queueLimits.lookups.waitingMax,
    ownerOf: ({ token }) => merchantIdOf(token),
    run: async (client, keys) => Promise.all(keys.map((key) => findForPayment(client, options.server, key))),
  });
  const find = withExpiryStored(queue, expireOrder);
  const findForReport = withExpiryStored(payments, expireOrder);
  return {
    findByOrderId: (merchantId, orderId, timeoutMs) => find({ by: 'order_id', merchantId, value: orderId }, timeoutMs),
    findByServiceOrderId: (merchantId, serviceOrderId, timeoutMs) =>
      find({ by: 'serviceOrderId', merchantId, value: String(serviceOrderId) }, timeoutMs),
    findByPaymentId: (merchantId, paymentId, timeoutMs) =>
      find({ by: 'paymentId', merchantId, value: paymentId }, timeoutMs),
    findByToken: findLinkBy(find),
    findForPage: findLinkBy(withExpiryStored(pages, expireOrder)),
    findForPayment: (token, payment, timeoutMs) => findForReport({ token, ...payment }, timeoutMs),
    findLogo: logos.add,
    async close() {
      await Promise.all([payments.close(), logos.close()]);
      await Promise.all([queue.close(), pages.close()]);
    },
  };
}

/** Returns the clients with a `close` that does nothing, because another queue closes them. */
function withoutClose(clients: readonly LookupClient[]): LookupClient[] {
  return clients.map(({ run }) => ({ run, close: async () => {} }));
}

/** Turns a lookup of orders into a lookup of payment links. */
function findLinkBy(find: (lookup: Lookup, timeoutMs: number) => Promise<FoundOrder>) {
  return async (token: OrderToken, timeoutMs: number): Promise<LinkLookup> => {
    const found = await find(byToken(token), timeoutMs);
    if (found.kind !== 'found') return found;
    const { order, merchant } = found;
    return merchant === undefined ? { kind: 'unknown' } : { kind: 'found', order, merchant };
  };
}

function byToken(token: OrderToken): Lookup {
  return { by: 'orderToken', merchantId: merchantIdOf(token), value: token };
}

function openClients(options: DatabaseOptions, name: 'lookups' | 'pages'): LookupClient[] {
  const connection = {
    ...options,
    applicationName: `order-gateway ${name}`,
    // On Citus, the worker plans every run in any case.
    ...(options.server === undefined && { settings: plansEveryRun }),
  };
  return Array.from({ length: queueLimits[name].connections }, () =>
    openClient(connection, (db) => prepareStatements(db, options)),
  );
}

/**
 * Creates a queue of lookups. Those that arrive together and use the same kind of key share a statement, which uses the
 * index of that key.
 */
function createLookups(
  options: DatabaseOptions,
  name: 'lookups' | 'pages',
  clients: readonly LookupClient[],
  findMerchants: FindMerchants,
) {
  return createBatchQueue<LookupClient, Lookup, FoundOrder | Unstored<FoundOrder>>({
    ...options,
    name,
    clients,
    batchMax: queueLimits.lookups.batchMax,
    waitingMax: queueLimits[name].waitingMax,
    ownerOf: ({ merchantId }) => merchantId,
    run: (client, batch) => findBatch(client, options.server, batch, findMerchants),
  });
}

function prepareStatements(db: PostgresJsDatabase, { server }: DatabaseOptions) {
  const [merchantId, value] = [sql.placeholder('merchantId'), sql.placeholder('value')];
  const paid = alias(orders, 'paid');
  const paidLast = db
    .select({ orderId: paid.order_id })
    .from(paid)
    .where(and(eq(paid.merchantId, merchantId), eq(paid.paymentId, value)))
    .orderBy(desc(paid.paidAt), desc(paid.serviceOrderId))
    .limit(1);
  const refusedLast = db
    .select({ orderId: refusedPayments.order_id })
    .from(refusedPayments)
    .where(and(eq(refusedPayments.merchantId, merchantId), eq(refusedPayments.paymentId, value)))
    .orderBy(desc(refusedPayments.refusedAt), desc(refusedPayments.order_id))
    .limit(1);
  return {
    order_id: prepareFindBy(db, 'order_id', server),
    serviceOrderId: prepareFindBy(db, 'serviceOrderId', server),
    orderToken: prepareFindBy(db, 'orderToken', server),
    paymentId: {
      single: prepareFind(
        db,
        'find_one_by_payment_id',
        sql`${orders.merchantId} = ${merchantId} and ${orders.order_id} = coalesce(${paidLast}, ${refusedLast})`,
      ),
      batch: undefined,
    },
    accounts: db
      .select({
        id: accounts.id,
        profile: {
          clientId: accounts.clientId,
          name: accounts.name,
          mode: accounts.mode,
          isDisabled: isNotNull(accounts.disabledAt) as SQL<boolean>,
        },
        brand: brandOfMerchant,
        makesRefunds: accounts.makesRefunds,
        nowMs: sql<number>`floor(extract(epoch from now()) * 1000)::float8`,
      })
      .from(accounts)
      .where(sql`${accounts.id} = any(${sql.placeholder('merchantIds')}::bigint[])`)
      .prepare('find_merchants'),
    returnSecrets: prepareReturnSecrets(db),
    payment: db
      .select({
        merchantId: payments.merchantId,
        orderId: payments.order_id,
        paidOn: payments.paidOn,
        note: payments.note,
      })
      .from(payments)
      .where(
        and(
          eq(payments.checkoutId, sql.placeholder('checkoutId')),
          eq(payments.paymentId, sql.placeholder('paymentId')),
        ),
      )
      .prepare('find_payment'),
    refused: db
      .select({ refused: sql<RefusedPaymentJson>`to_jsonb(${refusedPayments}.*)` })
      .from(refusedPayments)
      .where(
        and(
          eq(refusedPayments.merchantId, merchantId),
          eq(refusedPayments.order_id, sql.placeholder('orderId')),
          eq(refusedPayments.checkoutId, sql.placeholder('checkoutId')),
          eq(refusedPayments.paymentId, sql.placeholder('paymentId')),
        ),
      )
      .prepare('find_refused_payment'),
    logo: db
      .select({ type: brands.logoType, image: brands.logo })
      .from(brands)
      .where(eq(brands.logoDigest, sql.placeholder('digest')))
      .limit(1)
      .prepare('find_logo'),
  };
}

async function findLogo(client: LookupClient, digest: string): Promise<FindOutcome<{ readonly logo: StoredLogo }>> {
  const [row] = await client.run(({ logo }) => logo.execute({ digest }));
  if (!row?.image || row.type === null) return { kind: 'unknown' };
  return { kind: 'found', logo: { type: row.type, image: row.image } };
}

/**
 * Reads the payment before its order. If the payment is stored for this order between the two reads, the order already
 * shows it. If it is stored for another order in that time, the change will fail. On Citus, a payment can be stored
 * before it changes its order; until then, it counts as unknown. On one server, a payment that is stored for this
 * order but did not change it is that of a deleted order with the same order_id.
 */
async function findForPayment(
  client: LookupClient,
  server: MerchantServer | undefined,
  key: PaymentKey,
): Promise<PaymentLookup | Unstored<PaymentLookup>> {
  const reading = client.run(({ payment }) => payment.execute({ ...key }));
  const findAccounts: FindMerchants = (client, ids) => readMerchants(client, ids, [key.checkoutId]);
  const link = readLinks(client, [byToken(key.token)], findAccounts);
  const [[payment], [row], accounts] = await Promise.all([reading, ...link]);
  const [merchant, account] = [row?.merchantId, key.checkoutId].map((id) => accounts.find((found) => found.id === id));
  if (row === undefined || merchant === undefined) return { kind: 'unknown' };
  const { merchantId, order_id: orderId } = row;
  const isOfOrder = payment?.merchantId === merchantId && payment.orderId === orderId;
  const hasPaid = row.checkoutId === key.checkoutId && row.paymentId === key.paymentId;
  const [stored] =
    isOfOrder && !hasPaid ? await client.run(({ refused }) => refused.execute({ ...key, merchantId, orderId })) : [];
  const refused = stored === undefined ? null : refusedPaymentOf(stored.refused);
  const isKnown = isOfOrder && server ? hasPaid || refused !== null : payment !== undefined;
  return unlessUnstored<PaymentLookup>([row], {
    ...linkOf(row, merchant),
    isKnown,
    storedPaidOn: payment?.paidOn ?? null,
    storedNote: payment?.note ?? null,
    refused,
    makesRefunds: key.checkoutId === merchantId || account?.makesRefunds === true,
    nowMs: merchant.nowMs,
  });
}

/**
 * Reads the orders for lookups that use the same kind of key and, if that key is a token, the merchants of the orders.
 * Sends all statements at once. Returns the orders and the merchants as separate promises.
 */
function readLinks(client: LookupClient, lookups: readonly Lookup[], findMerchants: FindMerchants) {
  const ids = lookups.map(({ merchantId }) => merchantId);
  const merchantIds = arrayLiteral(ids, (id) => id);
  const [lone] = lookups.length === 1 ? lookups : [];
  const by = lookups[0]?.by ?? 'order_id';
  return [
    client.run(({ [by]: { single, batch } }) =>
      lone === undefined && batch !== undefined
        ? batch.execute({ merchantId: ids[0], merchantIds, values: arrayLiteral(lookups, ({ value }) => value) })
        : single.execute({ ...lone }),
    ),
    by === 'orderToken' ? findMerchants(client, ids) : [],
  ] as const;
}

/**
 * Reads the merchants of links and other accounts, and the secrets that sign the merchants' return URLs. Secrets of
 * other accounts would be on another server of Citus.
 */
async function readMerchants(client: LookupClient, ids: readonly number[], others: readonly number[] = []) {
  const [accounts, secrets] = await Promise.all([
    client.run(({ accounts }) => accounts.execute({ merchantIds: arrayLiteral([...ids, ...others], (id) => id) })),
    client.run(({ returnSecrets }) => returnSecrets.execute({ merchantIds: arrayLiteral(ids, (id) => id) })),
  ]);
  const secretsOf = returnSecretsByMerchant(secrets);
  return accounts.map((merchant) => ({ ...merchant, returnSecrets: secretsOf.get(merchant.id) ?? [] }));
}

/** Returns a function that finds merchants, and reads only those that are not cached. */
function createMerchantCache(): FindMerchants {
  const cache = new Map<number, { readonly merchant: MerchantRow; readonly readAtMs: number }>();
  return async (client, ids) => {
    const readAtMs = performance.now();
    const found = new Map<number, MerchantRow>();
    for (const id of ids) {
      const cached = cache.get(id);
      if (cached !== undefined && readAtMs - cached.readAtMs < merchantCachedMs) found.set(id, cached.merchant);
    }
    const missing = ids.filter((id) => !found.has(id));
    if (missing.length === 0) return [...found.values()];
    const read = await readMerchants(client, missing);
    if (cache.size + read.length > merchantsCachedMax) cache.clear();
    for (const merchant of read) cache.set(merchant.id, { merchant, readAtMs });
    return [...found.values(), ...read];
  };
}

/** The outcome of a lookup that found this order and its merchant. */
function linkOf(
  order: ReadRow,
  { profile, returnSecrets, brand }: MerchantRow,
): LinkLookup & { readonly kind: 'found' } {
  return { kind: 'found', order: orderOf(order), merchant: { ...profile, returnSecrets, brand } };
}

async function findBatch(
  client: LookupClient,
  server: MerchantServer | undefined,
  batch: readonly Lookup[],
  findMerchants: FindMerchants,
): Promise<(FoundOrder | Unstored<FoundOrder>)[]> {
  const found = new Map<string, FoundOrder | Unstored<FoundOrder>>();
  // The row of an order need not contain the payment id by which it was found, so each payment id has its own
  // statement.
  const groups = Map.groupBy(batch, (lookup) => (lookup.by === 'paymentId' ? lookup : lookup.by));
  const reads = [...groups].flatMap(([group, lookups]) =>
    inStatements(server, lookups).map(async (shared) => {
      const [rows, accounts] = await Promise.all(readLinks(client, shared, findMerchants));
      return { group, rows, accounts };
    }),
  );
  for (const { group, rows, accounts } of await Promise.all(reads)) {
    const keyOfFound = (row: ReadRow) =>
      keyOf(typeof group === 'object' ? group : { by: group, merchantId: row.merchantId, value: row[group] });
    const merchantOf = new Map(accounts.map((merchant) => [merchant.id, merchant]));
    for (const row of rows) {
      const merchant = merchantOf.get(row.merchantId);
      const outcome = merchant ? linkOf(row, merchant) : { kind: 'found' as const, order: orderOf(row) };
      found.set(keyOfFound(row), unlessUnstored<FoundOrder>([row], outcome));
    }
  }
  return batch.map((lookup) => found.get(keyOf(lookup)) ?? { kind: 'unknown' });
}

/** Returns a lookup as one string, which is also that of a row that it finds. */
function keyOf({ by, merchantId, value }: Readonly<Record<keyof Lookup, unknown>>): string {
  return `${by} ${merchantId} ${value}`;
}
