import { createNoopMeter } from '@opentelemetry/api';
import type { AccountId } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import { createMerchantsWithOrder } from '@order-gateway/postgres/testing/webhook-events';
import {
  openWebhookDeliveries,
  openWebhookEndpoints,
  type WebhookDeliveries,
  type WebhookEndpoints,
} from '@order-gateway/postgres/webhooks';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { waitLimitMs } from '../../../../../tools/test-limits.ts';
import { startWebhookDelivery } from '../../../src/background/deliver.ts';
import type { Sender, SendResult } from '../../../src/background/send.ts';
import { createSigningSecrets } from '../../../src/runtime/secrets/signing-secrets.ts';
import { createMemoryLogger } from '../memory-logger.ts';

// Two deliverers use the gateway's code and PostgreSQL to deliver one event. Each of them stops before it claims, sends
// or records, so that these steps can happen in every order. The receiver is a function: a socket would add no step
// that can be ordered.

const database = useTestDatabase();
const secrets = createSigningSecrets([new Uint8Array(32).fill(9)]);
const [oldUrl, newUrl] = ['https://shop.example/old', 'https://shop.example/new'];

/** The receiver's responses: it accepts the event, closes the connection after receiving it, or responds 410 (Gone). */
const delivered: SendResult = { status: 204, text: 'HTTP 204' };
export const broken: SendResult = { text: 'ECONNRESET' };
export const gone: SendResult = { status: 410, text: 'HTTP 410' };

let endpoints: WebhookEndpoints;
let writer: postgres.Sql;
let deliverers: readonly Deliverer[];
/** The receiver's responses in the current schedule. */
let responses: SendResult[] = [];

beforeAll(() => {
  endpoints = openWebhookEndpoints(database.options);
  writer = postgres(database.url, { max: 1, onnotice: () => {} });
  deliverers = [startDeliverer(), startDeliverer()];
});

afterAll(async () => {
  await Promise.all([...(deliverers ?? []).map(({ close }) => close()), endpoints?.close(), writer?.end()]);
});

/** A point at which an attempt waits before its next step. */
interface Gate {
  /** The step. */
  readonly name: 'sends' | 'records';
  /** Lets the attempt take the step. If the step is `sends`, the receiver returns this response. */
  readonly pass: (response: SendResult) => void;
  /** Simulates the death of the process before the step. */
  readonly die: () => void;
}

type Deliverer = ReturnType<typeof startDeliverer>;

/** Starts a deliverer that claims only on request, and stops before each step of an attempt. */
function startDeliverer() {
  const { logger } = createMemoryLogger();
  const queue = openWebhookDeliveries(database.options);
  /** The values of the filter `failing` with which the deliverer may claim once. */
  const allowed = new Set<boolean>();
  let gate: Gate | undefined;
  const waitAt = <Result>(name: Gate['name'], make: (response: SendResult) => Promise<Result>) =>
    new Promise<Result>((resolve, reject) => {
      gate = {
        name,
        pass(response) {
          gate = undefined;
          make(response).then(resolve, reject);
        },
        die() {
          gate = undefined;
          reject(new Error('the process has died'));
        },
      };
    });
  let isRecorded = true;
  const deliveries: WebhookDeliveries = {
    ...queue,
    claim: async (filter) => {
      if (!allowed.has(filter.failing)) return { deliveries: [], isDone: true };
      const claimed = await queue.claim(filter);
      allowed.delete(filter.failing);
      return claimed;
    },
    record: (delivery, result) =>
      waitAt('records', async () => {
        await queue.record(delivery, result);
        isRecorded = true;
      }),
  };
  const send: Sender['send'] = () =>
    waitAt('sends', async (response) => {
      responses.push(response);
      return response;
    });
  const delivery = startWebhookDelivery({
    deliveries,
    sender: { send, close() {} } as Sender,
    meter: createNoopMeter(),
    secrets,
    logger,
    retryPause: () => 0,
    now: Date.now,
    baseUrl: () => 'https://pay.example.com' as BaseUrl,
    lateDays: () => 1,
  });
  return {
    gate: () => gate,
    async claim() {
      for (const isFailing of [false, true]) allowed.add(isFailing);
      delivery.wake();
      await vi.waitUntil(() => allowed.size === 0, { timeout: waitLimitMs, interval: 1 });
    },
    async pass(response: SendResult) {
      const { name, pass } = gate as Gate;
      isRecorded = name !== 'records';
      pass(response);
      await vi.waitUntil(() => isRecorded && (name === 'records' || gate !== undefined), {
        timeout: waitLimitMs,
        interval: 1,
      });
    },
    close() {
      gate?.die();
      return delivery.close();
    },
  };
}

/** Changes to the endpoint during a delivery. */
const changes = {
  'moves to another URL': (merchantId: AccountId, id: string) => endpoints.update(merchantId, id, { url: newUrl }),
  'is disabled': (merchantId: AccountId, id: string) => endpoints.update(merchantId, id, { status: 'disabled' }),
  'is removed': (merchantId: AccountId, id: string) => endpoints.remove(merchantId, id),
};

/** The conditions of one exploration. */
export interface Plan {
  readonly change?: keyof typeof changes;
  /** The receiver's response to the first attempt. The receiver accepts the event in every later attempt. */
  readonly firstResponse?: SendResult;
}

/** Creates a schedule of which no step has been taken yet. */
async function startSchedule(merchantId: AccountId, { change, firstResponse = delivered }: Plan) {
  const [{ endpointId = '' } = {}] = await endpoints.list(merchantId);
  responses = [];
  const stepsLeft: Record<string, number> = {
    writes: 1,
    commits: 1,
    'a lease ends': 1,
    '1 claims': 1,
    '2 claims': 2,
    '1 dies': 1,
  };
  if (change !== undefined) stepsLeft[change] = 1;
  const isLeased = async () => (await rowOf(merchantId))?.state === 'leased';
  const endLease = () => database.sql`update webhook_deliveries set next_attempt_at = now() - interval '1 s'
    where merchant_id = ${merchantId} and next_attempt_at is not null`;
  const respond = () => (responses.length === 0 ? firstResponse : delivered);
  const steps: Record<string, () => PromiseLike<unknown>> = {
    writes: async () => {
      await writer`begin`;
      await writer`select change_order(${merchantId}, 'WEB-2026-000417', 'UN_PAID', 'CANCELLED', 'order.cancelled', null,
        null, null, now())`;
    },
    commits: () => writer`commit`,
    'a lease ends': endLease,
    '1 claims': () => (deliverers[0] as Deliverer).claim(),
    '2 claims': () => (deliverers[1] as Deliverer).claim(),
    '1 dies': async () => deliverers[0]?.gate()?.die(),
    ...(change && { [change]: () => changes[change](merchantId, endpointId) }),
  };
  for (const [index, deliverer] of deliverers.entries()) {
    for (const name of ['sends', 'records']) steps[`${index + 1} ${name}`] = () => deliverer.pass(respond());
  }
  return {
    async choices(): Promise<string[]> {
      const gates = deliverers.map((deliverer) => deliverer.gate()?.name);
      const leased = await isLeased();
      return Object.keys(steps).filter((name) => {
        const [deliverer, step] = name.split(' ') as [string, string];
        if (name in stepsLeft && stepsLeft[name] === 0) return false;
        if (name === 'commits') return stepsLeft.writes === 0;
        if (name === 'a lease ends') return leased;
        if (name === '1 dies') return gates[0] !== undefined;
        if (step === 'claims') return gates[Number(deliverer) - 1] === undefined;
        return step === 'sends' || step === 'records' ? gates[Number(deliverer) - 1] === step : true;
      });
    },
    async take(name: string) {
      if (stepsLeft[name] !== undefined) stepsLeft[name] -= 1;
      await steps[name]?.();
      const row = await rowOf(merchantId);
      const isReceived = responses.some(({ status }) => status === 204);
      if (row?.state === 'delivered' && !isReceived)
        throw new Error('the event is marked delivered, but was never received');
    },
    /** Identifies the state: two schedules with the same key have the same possible continuations. */
    async key() {
      const [endpoint] = await database.sql`select url, disabled_at is not null as is_disabled,
        failing_since is not null as is_failing from webhook_endpoints where merchant_id = ${merchantId}`;
      const gates = deliverers.map((deliverer) => deliverer.gate()?.name);
      return JSON.stringify([stepsLeft, await rowOf(merchantId), endpoint, gates, responses]);
    },
    /** Lets the second deliverer finish alone. Rejects if the event of an enabled endpoint is not delivered. */
    async finish() {
      deliverers[0]?.gate()?.die();
      if (stepsLeft.writes === 1) await steps.writes?.();
      if (stepsLeft.commits === 1) await steps.commits?.();
      const [, survivor] = deliverers as [Deliverer, Deliverer];
      for (let attempt = 0; attempt < 5; attempt += 1) {
        while (survivor.gate() !== undefined) await survivor.pass(respond());
        const { state } = (await rowOf(merchantId)) ?? {};
        if (state !== 'due' && state !== 'leased') break;
        await endLease();
        await survivor.claim();
      }
      const state = (await rowOf(merchantId))?.state;
      const [endpoint] = await endpoints.list(merchantId);
      if (endpoint?.disabledAt !== null) expect(['delivered', 'given up', undefined]).toContain(state);
      else {
        expect(state).toBe('delivered');
        expect(responses).toContainEqual(delivered);
      }
    },
  };
}

/**
 * Returns the row of a merchant's only delivery, if it exists. Its state is `due`, `leased`, `delivered` or `given up`.
 */
async function rowOf(merchantId: AccountId) {
  const [row] = await database.sql`
    select attempts, last_result, case when delivered_at is not null then 'delivered' when next_attempt_at is null
      then 'given up' when next_attempt_at > now() then 'leased' else 'due' end as state
    from webhook_deliveries where merchant_id = ${merchantId}`;
  return row;
}

/**
 * Takes every possible next step in every state of one delivery. Returns the number of states and schedules. Rejects
 * with an error that names the schedule that violates an invariant.
 */
export async function checkEverySchedule(plan: Plan): Promise<{ readonly states: number; readonly schedules: number }> {
  const seen = new Set<string>();
  const unexplored: string[][] = [[]];
  let merchants: AccountId[] = [];
  let schedules = 0;
  for (let path = unexplored.pop(); path !== undefined; path = unexplored.pop()) {
    if (merchants.length === 0) merchants = await createMerchants();
    try {
      const schedule = await startSchedule(merchants.pop() as AccountId, plan);
      for (const name of path) await schedule.take(name);
      for (let key = await schedule.key(); !seen.has(key); key = await schedule.key()) {
        seen.add(key);
        const [next, ...alternatives] = await schedule.choices();
        if (next === undefined) break;
        for (const alternative of alternatives) unexplored.push([...path, alternative]);
        path.push(next);
        await schedule.take(next);
      }
      await schedule.finish();
      schedules += 1;
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}\nafter the steps ${path.join(', ')}`);
    }
  }
  return { states: seen.size, schedules };
}

/** Creates 50 merchants, each with an unpaid order and an endpoint. Returns their ids. */
async function createMerchants(): Promise<AccountId[]> {
  const merchantIds = await createMerchantsWithOrder(database.url, database.sql, 50);
  await database.sql`update orders set order_status = 'UN_PAID', cancelled_at = null`;
  for (const merchantId of merchantIds) {
    await endpoints.create(merchantId, { url: oldUrl, signingSecret: secrets.encrypt(merchantId, new Uint8Array(32)) });
  }
  return merchantIds;
}
