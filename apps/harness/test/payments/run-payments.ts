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
import { startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { operationCall } from '../../src/load/calls/call-maker.ts';
import { isResponse, openSender, type Reply } from '../../src/load/calls/sender.ts';
import { startClock } from '../../src/load/run/clock.ts';
import { createRecorder } from '../../src/load/run/recorder.ts';
import { createOrders } from '../../src/workload/orders.ts';
import { type Seeded, seededAt } from '../../src/workload/seeded.ts';
import { killGateway, restart } from '../faults/faults.ts';
import { readFeed } from './read-feed.ts';

/** The number of orders, and how often a gateway and the server are killed during the run. */
export interface PaymentPlan {
  readonly seed: number;
  readonly orders: number;
  readonly gatewayKills: number;
  readonly serverKills: number;
  /** Whether to wait until the last leases have ended and their orders have expired. */
  readonly waitsForLeases: boolean;
}

/** The result of a run. */
export interface PaymentRun {
  readonly audit: AuditResult;
  /** The violations in the merchants' feeds. */
  readonly violations: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

const merchants = [{ name: 'Lasting' }, { name: 'Expiring', defaultLifetimeSeconds: 1 }];
const checkouts = ['One', 'Two'].map((name) => ({ name, kind: 'checkout' as const }));

/** The number of orders that are paid at the same time, and the number of connections to each gateway. */
const [concurrentOrders, connections] = [120, 16];

/** All attempts to pay an order begin within this time after its creation. */
const attemptsWithinMs = 2_000;

/** The shortest lease: 60 s. */
const leaseSeconds = 60;

/** Temporary outcomes, after which a call is sent again. The gateway may already have executed it. */
const temporary = /^(unavailable|overloaded|deadline_exceeded|rate_limited)$/;

/**
 * Two checkout systems each make two attempts to pay every order, at random times: they start an attempt, pay with or
 * without an attempt, end the attempt, or stop calling. Merchants cancel some orders, and some orders expire. Gateways
 * and the server are killed during the run, and every call is repeated until its outcome is known. Everything stops
 * when the test ends.
 */
export async function runPayments(plan: PaymentPlan): Promise<PaymentRun> {
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
  let [repeated, leases] = [0, 0];

  /** Sends a call to gateways chosen at random until its outcome is known. */
  async function send(
    operation: Parameters<typeof operationCall>[0],
    request: Members,
    { account, order, random }: { readonly account: Credentials; readonly order: PaidOrder; readonly random: Seeded },
  ): Promise<Reply> {
    for (;;) {
      const sender = senders[random.below(senders.length)];
      const call = operationCall(operation, request, { protocol: 'grpc', account, order });
      recorder.recordSent(call, clock.now(), 0);
      const reply = (await sender?.send(call)) ?? { outcome: 'no sender' };
      recorder.recordReply(call, reply, clock.now(), 0);
      if (isResponse(reply.outcome) && !temporary.test(reply.outcome)) return reply;
      repeated += 1;
      await sleep(50 + random.below(200), undefined, { signal: ended.signal });
    }
  }

  async function attempt(order: PaidOrder, orderToken: string, checkout: number, index: number, random: Seeded) {
    const caller = { account: accountAt(merchants.length + checkout), order, random };
    const { fields } = orderOf(order.number);
    const attemptId = `${order.orderId}-${checkout}-${index}`;
    const attemptKey = { order_token: orderToken, attempt_id: attemptId };
    await sleep(random.below(attemptsWithinMs));
    let hasLease = false;
    if (random.fraction() < 0.8) {
      const request = { ...attemptKey, lease_seconds: new JsonNumber(String(leaseSeconds)) };
      hasLease = (await send('StartPayment', request, caller)).leaseEndsAt !== undefined;
      if (hasLease) leases += 1;
      await sleep(random.below(attemptsWithinMs / 4));
      const [isAbandoned, isDeclined] = [random.fraction() < 0.3, random.fraction() < 0.5];
      if (hasLease && isAbandoned && !isDeclined) return;
      if (hasLease && isAbandoned) {
        await send('EndPayment', attemptKey, caller);
        return;
      }
      // Some customers pay although their attempt could not start.
      if (!hasLease && random.fraction() < 0.7) return;
    }
    const payment = {
      ...(hasLease ? attemptKey : { order_token: orderToken }),
      payment_id: `payment-${attemptId}`,
      paid_at: new Date().toISOString(),
      order_amount: new JsonNumber(random.fraction() < 0.05 ? '9999.99' : (fields.order_amount ?? '')),
      order_currency: fields.order_currency,
    };
    await send('RecordPayment', payment, caller);
  }

  async function pay(number: number): Promise<void> {
    const random = seededAt(seed, 10 * number);
    const { merchant, fields } = orderOf(number);
    const order = { number, orderId: fields.order_id ?? '' };
    const caller = { account: accountAt(merchant), order, random };
    const request = { ...fields, order_amount: new JsonNumber(fields.order_amount ?? '') };
    const { orders = [] } = await send('CreateOrder', request, caller);
    const { order_token } = orders[0] ?? {};
    if (order_token === undefined) throw new Error(`${order.orderId} was not created`);
    const attempts = [0, 1, 2, 3].map((index) =>
      attempt(order, order_token, index % 2, index >> 1, seededAt(seed, 10 * number + 1 + index)),
    );
    if (random.fraction() < 0.4) {
      await sleep(random.below(attemptsWithinMs));
      await send('CancelOrder', { order_id: order.orderId }, caller);
    }
    await Promise.all(attempts);
  }

  let next = 0;
  const payAll = async () => {
    while (next < plan.orders) {
      next += 1;
      await pay(next);
    }
  };
  const random = seededAt(plan.seed, 0);
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
    Promise.all([...Array.from({ length: concurrentOrders }, payAll), killAll()]),
    ...gateways.map(({ exited }) => exited),
  ]);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  if (plan.waitsForLeases) await sleep(1_000 * (leaseSeconds + 1));
  recorder.end();
  journal.close();
  const feeds = await Promise.all(merchants.map((_, index) => readFeed(first.httpUrl, accountAt(index))));
  const count = (type: string) => feeds.reduce((sum, { counts }) => sum + (counts[type] ?? 0), 0);
  const figures = {
    orders: plan.orders,
    seconds,
    kills: kills.length,
    repeated,
    leases,
    paid: count('order.paid'),
    cancelled: count('order.cancelled'),
    expired: count('order.expired'),
    refused: count('order.payment_refused'),
  };
  const audit = await auditJournal(journalFile, server.url);
  return { audit, violations: feeds.flatMap(({ violations }) => violations), figures };
}

/** An order of a run. */
interface PaidOrder {
  readonly number: number;
  readonly orderId: string;
}
