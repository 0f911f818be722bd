import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithThisProcess, startTestServer } from '@order-gateway/dev-postgres/testing';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { createEncryption } from '@order-gateway/runtime/encryption';
import { and, gt, notInArray, sql } from 'drizzle-orm';
import { vi } from 'vitest';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { listen } from '../../../../tools/test-resources.ts';
import { comparePayments, type Difference } from '../../src/attempts/compare.ts';
import { openGateway } from '../../src/gateway/gateway.ts';
import { accountReader } from '../../src/providers/accounts.ts';
import { createProviders } from '../../src/providers/all.ts';
import type { Fetch } from '../../src/providers/provider.ts';
import { newId } from '../../src/store/ids.ts';
import { checkoutMigrations } from '../../src/store/migrate.ts';
import { attempts, connections } from '../../src/store/schema.ts';
import { openStore } from '../../src/store/store.ts';
import { createStripeStandIn } from '../../testing/stripe-stand-in.ts';
import { startGateway } from '../helpers/gateway-process.ts';
import { testSecretsKey } from '../helpers/world.ts';
import type { KillableOptions } from './killable-checkout.ts';

/** The size of a run. */
export interface Run {
  readonly payments: number;
  readonly customersAtOnce: number;
  /** A process is killed each time this number of payments has started. */
  readonly paymentsPerKill: number;
}

/** What each customer does, in turn. Requests to processes that are dead are repeated, as customers do. */
const stories = [
  'pays and returns',
  'pays, and a webhook arrives',
  'pays, and nothing arrives',
  'lets the session expire',
  'opens two tabs and pays',
  'pays while the merchant cancels',
  'pays, and the capture gets no response',
  'pays, and Stripe answers the capture with 500',
  'opens a session that gets no response, and pays',
] as const;

const captureRoute = 'POST /v1/payment_intents/{intent}/capture';
const sessionRoute = 'POST /v1/checkout/sessions';

/** The states in which nothing is left to do. */
const finalStates = ['RECORDED', 'ENDED', 'REFUNDED'] as const;

const retryMs = 100;

/** The merchants, each with an account of its own, because work in the background is paced for each account. */
const shopCount = 5;

interface Shop {
  readonly connectionId: string;
  readonly stripe: ReturnType<typeof createStripeStandIn>;
  /** The merchant's credentials. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Lets customers pay while processes of the checkout, the gateway and PostgreSQL are killed in turn. Returns what
 * happened to the money, and every payment that was not recorded, released or refunded exactly once.
 */
export async function runKills({ payments, customersAtOnce, paymentsPerKill }: Run) {
  const server = await startTestServer();
  const closing: (() => Promise<unknown>)[] = [server.stop];
  try {
    const { url: databaseUrl } = await server.createDatabase();
    await migrateDatabase(databaseUrl);
    await migrateDatabase(databaseUrl, undefined, checkoutMigrations);
    const accounts = openAccountAdmin({ url: databaseUrl, patience: testPatience });
    const merchants: readonly Credentials[] = await Promise.all(
      Array.from({ length: shopCount }, () => accounts.create('Test Shop', 'live')),
    );
    const credentials = await accounts.create('Checkout', 'checkout');
    await accounts.close();
    const store = openStore({ url: databaseUrl });
    closing.push(store.close);
    const encryption = createEncryption<string>([testSecretsKey]);
    const shops: readonly Shop[] = await Promise.all(
      merchants.map(async ({ clientId: merchantId, clientSecret }, index) => {
        const stripe = createStripeStandIn({ key: `rk_live_standIn${index}` });
        const connectionId = newId('con');
        const secrets = encryption.encrypt(connectionId, Buffer.from(JSON.stringify(stripe.secrets)));
        const account = { provider: 'stripe', mode: 'live', account: 'acct_stand_in' } as const;
        await store.connect({ connectionId, merchantId, ...account, secrets }, 'tester');
        return { connectionId, stripe, headers: { 'x-client-id': merchantId, 'x-client-secret': clientSecret } };
      }),
    );
    const sendToShop: Fetch = (url, init) => {
      const sent = new Headers(init.headers).get('authorization');
      const shop = shops.find(({ stripe }) => sent === `Bearer ${stripe.secrets.key}`);
      if (shop === undefined) throw new Error('a request has no key of a shop');
      return shop.stripe.send(url, init);
    };
    const standInUrl = `http://127.0.0.1:${await listen(createServer(forwardTo(sendToShop)))}`;

    let gateway = await startGateway(databaseUrl);
    closing.push(() => gateway.stop('SIGKILL'));
    const checkoutOptions: KillableOptions = {
      host: '127.0.0.1',
      port: 0,
      databaseUrl,
      gatewayUrl: gateway.url,
      gatewayGrpcUrl: gateway.grpcUrl,
      credentials,
      secretsKey: testSecretsKey.toBase64(),
      standInUrl,
    };
    let checkout = await startCheckout(checkoutOptions);
    closing.push(() => checkout.kill());
    const checkoutUrl = `http://127.0.0.1:${checkout.port}`;
    const gatewayPorts = {
      HTTP_PORT: new URL(gateway.url).port,
      GRPC_PORT: new URL(gateway.grpcUrl).port,
    };

    const kills = {
      async checkout() {
        await checkout.kill();
        // A lease of a dead process lasts for a minute at most.
        await persist(() => store.run((db) => db.update(attempts).set({ leasedUntil: null })));
        checkout = await persist(() => startCheckout({ ...checkoutOptions, port: checkout.port }));
      },
      async gateway() {
        await gateway.stop('SIGKILL');
        gateway = await persist(() => startGateway(databaseUrl, gatewayPorts));
      },
      async postgres() {
        const pid = server.pid();
        if (pid !== undefined) process.kill(pid, 'SIGKILL');
        await vi.waitUntil(() => ![undefined, pid].includes(server.pid()), waitLimitMs);
      },
    };

    const callGateway = ({ headers }: Pick<Shop, 'headers'>, method: string, path: string, body?: object) =>
      persist(async () => {
        const response = await fetch(`${gateway.url}${path}`, {
          method,
          headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
          ...(body && { body: JSON.stringify(body) }),
        });
        if (response.status >= 500 || response.status === 429)
          throw new Error(`the gateway returned ${response.status}`);
        return Object(await response.json());
      });

    /** Clicks Pay until there is a session. Returns its id; `undefined` if the order can no longer be paid. */
    const openSession = (orderToken: string) =>
      persist(async () => {
        const response = await fetch(`${checkoutUrl}/pay/${orderToken}`, {
          method: 'POST',
          headers: { 'sec-fetch-site': 'same-origin' },
          redirect: 'manual',
        });
        const location = response.headers.get('location') ?? '';
        if (location.startsWith('https://checkout.stripe.example/')) return location.split('/').at(-1);
        if (location.includes('order_status=')) return undefined;
        throw new Error(`no session yet: ${response.status}`);
      });

    async function customer(index: number): Promise<void> {
      const story = stories[index % stories.length];
      const shop = shops[index % shopCount] as Shop;
      const { stripe, connectionId } = shop;
      const orderId = `order-${index}`;
      const { order_token: orderToken } = await callGateway(
        shop,
        'POST',
        '/order',
        validOrderInput({ order_id: orderId }),
      );
      if (story === 'opens a session that gets no response, and pays')
        stripe.misbehave(sessionRoute, 'effect without response');
      const tabs = story === 'opens two tabs and pays' ? 2 : 1;
      const [sessionId, other] = await Promise.all(Array.from({ length: tabs }, () => openSession(orderToken)));
      if (sessionId === undefined) return;
      if (story === 'lets the session expire') return stripe.expire(sessionId);
      if (story === 'pays, and the capture gets no response') stripe.misbehave(captureRoute, 'effect without response');
      if (story === 'pays, and Stripe answers the capture with 500') stripe.misbehave(captureRoute, '500');
      for (const id of new Set([sessionId, other ?? sessionId]))
        if (stripe.sessions.get(id)?.status === 'open') stripe.pay(id);
      if (story === 'pays while the merchant cancels') await callGateway(shop, 'POST', `/order/${orderId}/cancel`);
      // A return or a webhook that finds no process is lost.
      if (story === 'pays and returns') {
        const { attempt_id: attemptId } = stripe.sessions.get(sessionId)?.metadata ?? {};
        await fetch(`${checkoutUrl}/back/${attemptId}`, { redirect: 'manual' }).catch(() => {});
      }
      if (story === 'pays, and a webhook arrives') {
        const { body, headers } = stripe.webhook();
        await fetch(`${checkoutUrl}/hooks/${connectionId}`, { method: 'POST', body, headers }).catch(() => {});
      }
    }

    let next = 0;
    let killed = 0;
    let killing: Promise<unknown> = Promise.resolve();
    const worker = async () => {
      while (next < payments) {
        const index = next;
        next += 1;
        if (index % paymentsPerKill === paymentsPerKill - 1) {
          const kill = Object.values(kills)[killed % 3];
          killed += 1;
          killing = killing.then(kill);
        }
        await customer(index);
      }
    };
    await Promise.all(Array.from({ length: customersAtOnce }, worker));
    await killing;

    // Makes attempts that are due in minutes or hours due now.
    const isUnfinished = notInArray(attempts.state, [...finalStates]);
    const countUnfinished = () =>
      store.run(async (db) => {
        await db
          .update(connections)
          .set({ listedUntil: sql`least(${connections.listedUntil}, now() - interval '61 s')` });
        await db
          .update(attempts)
          .set({ dueAt: sql`now()` })
          .where(and(isUnfinished, gt(attempts.dueAt, sql`now()`)));
        return db.$count(attempts, isUnfinished);
      });
    // A slow machine takes long for all of them, but never long for the next one.
    for (let left = Number.POSITIVE_INFINITY; left > 0; ) {
      const before = left;
      await vi.waitUntil(
        async () => {
          left = await countUnfinished().catch(() => before);
          return left < before;
        },
        { timeout: waitLimitMs, interval: 1_000 },
      );
    }

    const outcomes = { recorded: 0, released: 0, refunded: 0 };
    const faults: string[] = [];
    const paid = new Map<string, string[]>();
    const sessions = shops.flatMap((shop) =>
      [...shop.stripe.sessions.values()].map((session) => ({ ...session, shop })),
    );
    for (const { payment_intent: intent, metadata, shop } of sessions) {
      if (intent === null) continue;
      const { status, latest_charge: charge } = intent;
      const { order_id: orderId = '' } = metadata;
      const order = await callGateway(shop, 'GET', `/order/${orderId}`);
      const isRecorded = order.order_status === 'PAID' && order.payment_id === intent.id;
      if (status === 'succeeded' && isRecorded && !charge.refunded) {
        outcomes.recorded += 1;
        paid.set(orderId, [...(paid.get(orderId) ?? []), intent.id]);
      } else if (status === 'succeeded' && !isRecorded && charge.refunded) outcomes.refunded += 1;
      else if (status === 'canceled' && !isRecorded) outcomes.released += 1;
      else faults.push(`${orderId}: ${intent.id} is ${status}, the order is ${order.order_status}`);
    }
    for (const [orderId, ids] of paid) if (ids.length > 1) faults.push(`${orderId} was paid by ${ids.join(' and ')}`);
    const deps = {
      store,
      gateway: openGateway(gateway.grpcUrl, credentials),
      providers: createProviders(store, { baseUrl: () => checkoutUrl, send: sendToShop }),
      accountOf: accountReader(store, encryption),
    };
    const differences: Difference[] = [];
    for (const { connectionId } of shops)
      for await (const found of comparePayments(deps, { connectionId, provider: 'stripe' }, new Date(0)))
        differences.push(found);
    // No call is repeated here, because orders are created regardless of the state of the checkout.
    const order = async (order_id: string) => {
      const body = JSON.stringify(validOrderInput({ order_id }));
      const headers = { ...shops[0]?.headers, 'content-type': 'application/json' };
      return (await fetch(`${gateway.url}/order`, { method: 'POST', headers, body })).status;
    };
    checkout.pause();
    const created = { whileHung: await order('while-hung'), whileDead: 0 };
    await checkout.kill();
    created.whileDead = await order('while-dead');
    return { outcomes, faults, killed, differences, created };
  } finally {
    for (const close of closing.toReversed()) await close();
  }
}

/** Repeats calls that fail while a process is dead. */
async function persist<Result>(act: () => Promise<Result>): Promise<Result> {
  const limitMs = performance.now() + waitLimitMs;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (performance.now() > limitMs) throw error;
      await sleep(retryMs);
    }
  }
}

async function startCheckout(options: KillableOptions) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'killable-checkout.ts'), JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithThisProcess(child);
  const exited = once(child, 'exit');
  const line = once(createInterface({ input: child.stdout }), 'line');
  const [port] = await Promise.race([line, exited.then(() => Promise.reject(new Error('the checkout ended')))]);
  return {
    port: Number(port),
    /** Lets the process hang until it is killed. */
    pause: () => void child.kill('SIGSTOP'),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Serves stand-ins on a socket. A response that is lost closes the connection. */
function forwardTo(send: Fetch) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const { method = 'GET', headers } = request;
    try {
      const answer = await send(`https://api.stripe.com${request.url}`, {
        method,
        headers: headers as Record<string, string>,
        ...(method === 'POST' && { body: body.toString() }),
      });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    } catch {
      response.destroy();
    }
  };
}
