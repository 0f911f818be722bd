import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import type { Credentials } from '@order-gateway/domain/accounts';
import { JsonNumber, loadFixtures, type Members } from '@order-gateway/fixtures';
import { onTestFinished } from 'vitest';
import { type AuditResult, auditJournal } from '../../src/audit/audit.ts';
import { createJournal } from '../../src/audit/journal.ts';
import { type MerchantSetup, startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { operationCall } from '../../src/load/calls/call-maker.ts';
import { isResponse, openSender, type Reply } from '../../src/load/calls/sender.ts';
import { startClock } from '../../src/load/run/loops.ts';
import { createRecorder } from '../../src/load/run/recorder.ts';
import { createOrders } from '../../src/workload/orders.ts';
import { type Seeded, seededAt } from '../../src/workload/seeded.ts';
import { killGateway, restart } from '../faults/faults.ts';
import { readFeed } from './read-feed.ts';

/** The number of orders, and how often a gateway and the server are killed during the run. */
export interface KillPlan {
  readonly seed: number;
  readonly orders: number;
  readonly gatewayKills: number;
  readonly serverKills: number;
}

/** The result of a run. */
export interface KilledRunResult {
  readonly audit: AuditResult;
  /** The violations in the merchants' feeds, and others that the run found. */
  readonly violations: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

/** An order of a run. */
export interface RunOrder {
  readonly number: number;
  readonly orderId: string;
}

/** The account and order of a call. Its gateways are chosen at random. */
interface CallContext {
  readonly account: Credentials;
  readonly order: RunOrder;
  readonly random: Seeded;
}

/** The accounts of a run, and how many of its orders are worked on at the same time. */
interface RunSetup {
  readonly merchants: readonly MerchantSetup[];
  readonly checkouts: readonly MerchantSetup[];
  readonly concurrentOrders: number;
}

/** The number of connections to each gateway. */
const connections = 16;

/** The limits of the longest pause before a call is repeated. */
const pauseMs = { min: 200, max: 5_000 };

/** Temporary outcomes, after which a call is sent again. The gateway may already have executed it. */
const temporary = /^(unavailable|overloaded|deadline_exceeded|rate_limited)$/;

/**
 * Starts a server and two gateways, which are killed while `runAll` works on the orders. Every call is repeated until
 * its outcome is known. Everything stops when the test ends.
 */
export async function startKilledRun(plan: KillPlan, { merchants, checkouts, concurrentOrders }: RunSetup) {
  const ended = new AbortController();
  const started = new AsyncDisposableStack();
  onTestFinished(async () => {
    ended.abort();
    await started.disposeAsync();
  });
  const server = await startTestServer();
  started.defer(server.stop);
  const first = await startOwnGateway([...merchants, ...checkouts], ended.signal, async () => ({
    url: server.url,
    stop: async () => {},
  }));
  started.defer(first.stop);
  const gateways = [first, await first.startAnother()] as const;
  const senders = gateways.map((gateway) => openSender(gateway, connections));
  started.defer(async () => senders.forEach((sender) => void sender.close()));
  const { validOrder } = await loadFixtures();
  const accountAt = (index: number) => first.credentials[index] as Credentials;
  const { path: folder } = started.use(await mkdtempDisposable(join(tmpdir(), 'payments-')));
  const journalFile = join(folder, 'journal.ndjson');
  const { seed } = plan;
  const clientIds = merchants.map((_, index) => accountAt(index).clientId);
  const clock = startClock();
  const journal = createJournal(journalFile, { seed, client_ids: clientIds, started_at_ms: Date.now() });
  const recorder = createRecorder({ plannedSeconds: 0, journal });
  const orderOf = createOrders(validOrder, { seed, merchants: merchants.length });
  let repeated = 0;

  /** Sends a call to gateways chosen at random until its outcome is known. */
  async function send(
    operation: Parameters<typeof operationCall>[0],
    request: Members,
    { account, order, random }: CallContext,
  ): Promise<Reply> {
    // The pauses grow, so that the repeated calls of all orders leave a slow machine the time to start a gateway.
    for (let pauseMaxMs = pauseMs.min; ; pauseMaxMs = Math.min(2 * pauseMaxMs, pauseMs.max)) {
      const sender = senders[random.below(senders.length)];
      const call = operationCall(operation, request, { protocol: 'grpc', account, order });
      recorder.recordSent(call, clock.now(), 0);
      const reply = (await sender?.send(call)) ?? { outcome: 'no sender' };
      recorder.recordReply(call, reply, clock.now(), 0);
      if (isResponse(reply.outcome) && !temporary.test(reply.outcome)) return reply;
      repeated += 1;
      await sleep(random.below(pauseMaxMs), undefined, { signal: ended.signal });
    }
  }

  /** Creates an order of the run. Returns its token and its merchant's calls. */
  async function create(number: number, random: Seeded) {
    const { merchant, fields } = orderOf(number);
    const order: RunOrder = { number, orderId: fields.order_id ?? '' };
    const caller = { account: accountAt(merchant), order, random };
    const request = { ...fields, order_amount: new JsonNumber(fields.order_amount ?? '') };
    const { orders = [] } = await send('CreateOrder', request, caller);
    const { order_token } = orders[0] ?? {};
    if (order_token === undefined) throw new Error(`${order.orderId} was not created`);
    return { order, fields, orderToken: order_token, caller };
  }

  /** Works on every order, numbered from 1, while gateways and the server are killed. Returns the seconds it took. */
  async function runAll(work: (number: number) => Promise<void>): Promise<number> {
    let next = 0;
    const workOnAll = async () => {
      while (next < plan.orders) {
        next += 1;
        await work(next);
      }
    };
    const random = seededAt(seed, 0);
    const kills = [
      ...Array.from({ length: plan.gatewayKills }, () => killGateway),
      ...Array.from({ length: plan.serverKills }, () => restart('SIGKILL')),
    ]
      .map((kill) => ({ kill, rank: random.fraction() }))
      .sort((a, b) => a.rank - b.rank);
    const killAll = async () => {
      for (const [index, { kill }] of kills.entries()) {
        const ordersBefore = ((index + 0.5) / kills.length) * plan.orders;
        while (next < ordersBefore) await sleep(20, undefined, { signal: ended.signal });
        await kill({ server, gateways, random, signal: ended.signal });
      }
    };
    const startedMs = performance.now();
    await Promise.race([
      Promise.all([...Array.from({ length: concurrentOrders }, workOnAll), killAll()]),
      ...gateways.map(({ exited }) => exited),
    ]);
    return Math.round((performance.now() - startedMs) / 1_000);
  }

  /** Audits the run. `countOf` counts the events of a type. */
  async function finish() {
    recorder.end();
    journal.close();
    const feeds = await Promise.all(merchants.map((_, index) => readFeed(first.httpUrl, accountAt(index))));
    return {
      audit: await auditJournal(journalFile, server.url),
      violations: feeds.flatMap(({ violations }) => violations),
      countOf: (type: string) => feeds.reduce((sum, { counts }) => sum + (counts[type] ?? 0), 0),
      figures: { orders: plan.orders, kills: plan.gatewayKills + plan.serverKills, repeated },
    };
  }

  return {
    checkoutAt: (index: number) => accountAt(merchants.length + index),
    signal: ended.signal,
    orderOf,
    send,
    create,
    runAll,
    finish,
  };
}
