import { setTimeout as sleep } from 'node:timers/promises';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import type { Credentials } from '@order-gateway/domain/accounts/credentials';
import { refusalCodes } from '@order-gateway/domain/orders/order';
import { JsonNumber, type Members } from '@order-gateway/fixtures/json-number';
import { loadFixtures } from '@order-gateway/fixtures/load-fixtures';
import { onTestFinished } from 'vitest';
import { startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { operationCall } from '../../src/load/calls/call-maker.ts';
import { isResponse, openSender, type Reply } from '../../src/load/calls/sender.ts';
import { type Seeded, seededAt } from '../../src/workload/seeded.ts';
import { killGateway, restart } from '../faults/faults.ts';
import { findViolations, type OrderLog } from './find-violations.ts';

/** The number of orders, and how often a gateway and the server are killed during the run. */
export interface PaymentPlan {
  readonly seed: number;
  readonly orders: number;
  readonly gatewayKills: number;
  readonly serverKills: number;
  /** Whether to wait until the last claims have ended and their orders have expired. */
  readonly waitsForClaims: boolean;
}

/** The result of a run. */
export interface PaymentRun {
  readonly violations: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

const merchants = [{ name: 'Lasting' }, { name: 'Expiring', defaultLifetimeSeconds: 1 }];
const checkouts = ['One', 'Two'].map((name) => ({ name, kind: 'checkout' as const }));

/** The orders that are paid at the same time, and the connections to each gateway. */
const [concurrentOrders, connections] = [120, 16];

/** Within this time from its creation all attempts at an order begin. */
const attemptsWithinMs = 2_000;

/** The shortest claim: 60 s. */
const leaseSeconds = 60;

/** Outcomes after which a call is sent again, because it may have been executed. */
const temporary = /^(unavailable|overloaded|deadline_exceeded|rate_limited)$/;

/**
 * Two checkout systems make two attempts each at every order, at random times: they claim it, pay it with or without the
 * claim, end the attempt, or stop calling. Merchants cancel some orders, and some expire. Gateways and the server are
 * killed during the run, and every call is repeated until its outcome is known. Everything ends with the test.
 */
export async function runPayments(plan: PaymentPlan): Promise<PaymentRun> {
  const ended = new AbortController();
  const started = new AsyncDisposableStack();
  onTestFinished(async () => {
    ended.abort();
    await started.disposeAsync();
  }, 60_000);
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
  const own = (index: number) => first.credentials[index] as Credentials;
  let repeated = 0;

  /** Sends a call to one gateway after the other until its outcome is known. */
  async function send(
    operation: Parameters<typeof operationCall>[0],
    request: Members,
    account: Credentials,
    random: Seeded,
  ): Promise<Reply> {
    for (;;) {
      const sender = senders[random.below(senders.length)];
      const call = operationCall(operation, request, { protocol: 'grpc', own: account });
      const reply = (await sender?.send(call)) ?? { outcome: 'no sender' };
      if (isResponse(reply.outcome) && !temporary.test(reply.outcome)) return reply;
      repeated += 1;
      await sleep(50 + random.below(200), undefined, { signal: ended.signal });
    }
  }

  async function attempt(log: OrderLog, orderToken: string, checkout: number, index: number, random: Seeded) {
    const account = own(merchants.length + checkout);
    const attemptId = `${log.orderId}-${checkout}-${index}`;
    const claim = { order_token: orderToken, attempt_id: attemptId };
    await sleep(random.below(attemptsWithinMs));
    const starts = random.fraction() < 0.8;
    let lease: OrderLog['leases'][number] | undefined;
    if (starts) {
      const request = { ...claim, lease_seconds: new JsonNumber(String(leaseSeconds)) };
      const { outcome, leaseEndsAt } = await send('StartPayment', request, account, random);
      log.outcomes.push(outcome);
      if (leaseEndsAt !== undefined) {
        lease = { sinceMs: Date.now(), untilMs: Date.parse(leaseEndsAt) };
        log.leases.push(lease);
      }
      await sleep(random.below(attemptsWithinMs / 4));
      // The claim may end from the moment at which its end is sent.
      const [leaves, declines] = [random.fraction() < 0.3, random.fraction() < 0.5];
      if (lease !== undefined && leaves && !declines) return;
      if (lease !== undefined) lease.untilMs = Math.min(lease.untilMs, Date.now());
      if (lease !== undefined && leaves) {
        log.outcomes.push((await send('EndPayment', claim, account, random)).outcome);
        return;
      }
      // Some customers pay although their attempt could not start.
      if (lease === undefined && random.fraction() < 0.7) return;
    }
    const payment = {
      ...(lease === undefined ? { order_token: orderToken } : claim),
      payment_id: `payment-${attemptId}`,
      paid_at: new Date().toISOString(),
      order_amount: new JsonNumber(random.fraction() < 0.05 ? '9.50' : '49.99'),
      order_currency: validOrder.order_currency,
    };
    const { outcome } = await send('RecordPayment', payment, account, random);
    if (outcome === 'ok' || outcome === 'replayed') log.accepted.push(payment.payment_id);
    else if (refusalCodes.some((code) => code === outcome)) log.refused.push([payment.payment_id, outcome]);
    else log.outcomes.push(outcome);
  }

  async function pay(number: number): Promise<OrderLog> {
    const random = seededAt(plan.seed, 10 * number);
    const merchant = random.below(merchants.length);
    const orderId = `payments-${plan.seed}-${number}`;
    const log: OrderLog = {
      orderId,
      merchant,
      leases: [],
      accepted: [],
      refused: [],
      cancelled: undefined,
      outcomes: [],
    };
    const { orders = [] } = await send('CreateOrder', { ...validOrder, order_id: orderId }, own(merchant), random);
    const { order_token } = orders[0] ?? {};
    if (order_token === undefined) throw new Error(`${orderId} was not created`);
    const attempts = [0, 1, 2, 3].map((index) =>
      attempt(log, order_token, index % 2, index >> 1, seededAt(plan.seed, 10 * number + 1 + index)),
    );
    if (random.fraction() < 0.4) {
      await sleep(random.below(attemptsWithinMs));
      log.cancelled = (await send('CancelOrder', { order_id: orderId }, own(merchant), random)).outcome;
    }
    await Promise.all(attempts);
    return log;
  }

  const logs: OrderLog[] = [];
  let next = 0;
  const payAll = async () => {
    while (next < plan.orders) {
      next += 1;
      logs.push(await pay(next));
    }
  };
  const random = seededAt(plan.seed, 0);
  const kills = [
    ...Array.from({ length: plan.gatewayKills }, () => killGateway),
    ...Array.from({ length: plan.serverKills }, () => restart('SIGKILL')),
  ]
    .map((kill) => ({ kill, order: random.fraction() }))
    .sort((one, other) => one.order - other.order);
  const killAll = async () => {
    for (const [index, { kill }] of kills.entries()) {
      const due = ((index + 0.5) / kills.length) * plan.orders;
      while (next < due) await sleep(20, undefined, { signal: ended.signal });
      await kill({ server, gateways, random, signal: ended.signal });
    }
  };
  const startedMs = performance.now();
  await Promise.race([
    Promise.all([...Array.from({ length: concurrentOrders }, payAll), killAll()]),
    ...gateways.map(({ exited }) => exited),
  ]);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  if (plan.waitsForClaims) await sleep(1_000 * (leaseSeconds + 1));
  const accounts = merchants.map((_, index) => own(index));
  const { violations, ...counts } = await findViolations(logs, { httpUrl: first.httpUrl, accounts });
  return { violations, figures: { orders: logs.length, seconds, kills: kills.length, repeated, ...counts } };
}
