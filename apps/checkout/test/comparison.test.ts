import type { AmountHundredths } from '@order-gateway/domain/money';
import { Command } from 'commander';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Advance, AdvanceDeps } from '../src/attempts/advance.ts';
import { comparePayments } from '../src/attempts/compare.ts';
import { createSweep } from '../src/attempts/sweep.ts';
import { addCheckCommand } from '../src/cli/check.ts';
import { OrderStatus } from '../src/gateway/gateway.ts';
import { type Provider, ProviderError, type Seen } from '../src/providers/provider.ts';
import { attempts, connections, refundedByHand } from '../src/store/schema.ts';
import type { Store } from '../src/store/store.ts';
import { openTestStore, startedAttempt, storeConnection } from './helpers/test-store.ts';

let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore());
});
afterAll(() => close());

const payment = { paymentId: 'pay_1', paidAt: new Date(), amount: 1_000n as AmountHundredths, currency: 'EUR' };
const captured: Seen = { is: 'captured', ...payment };

/** Stores a payment in a state that was reached an hour ago. Returns the attempt's id. */
async function storePayment(connectionId: string, state: 'RECORDED' | 'REFUNDED'): Promise<string> {
  const order = { orderToken: `token of ${connectionId}`, provider: 'listed', connectionId };
  const { attemptId = '' } = (await store.start({ ...startedAttempt, ...order })) ?? {};
  const paid = { ...payment, sessionId: attemptId, paidHundredths: payment.amount, paidCurrency: payment.currency };
  await store.run((db) =>
    db
      .update(attempts)
      .set({ ...paid, state, changedAt: new Date(Date.now() - 3_600_000), dueAt: null })
      .where(eq(attempts.attemptId, attemptId)),
  );
  return attemptId;
}

/** Stores a connection whose payments were compared at a time. */
const connect = (connectionId: string, comparedAt: Date) =>
  storeConnection(store, connectionId, { merchantId: `app_live_${connectionId}`, comparedAt });

async function* emptyList() {
  yield* [];
}

const depsOf = (provider: Partial<Provider>) =>
  ({
    store,
    gateway: { resolve: async () => ({ orderStatus: OrderStatus.PAID }) },
    providers: new Map([['listed', provider]]),
    accountOf: async () => ({}),
  }) as unknown as AdvanceDeps;

const compare = (connectionId: string, provider: Partial<Provider>, gateway?: AdvanceDeps['gateway']) =>
  Array.fromAsync(
    comparePayments(
      { ...depsOf(provider), ...(gateway && { gateway }) },
      { connectionId, provider: 'listed' },
      new Date(0),
    ),
  );

test('payments check says if there is no account whose payments it could compare', async () => {
  const lines: string[] = [];
  const program = new Command();
  addCheckCommand(
    program,
    (work) => work(depsOf({})),
    (line) => void lines.push(line),
  );
  await program.parseAsync(['check', `app_${'a'.repeat(24)}`], { from: 'user' });
  expect(lines).toEqual(['No account is connected whose payments could be compared.']);
});

test('a key that no longer works hides only the payments of its own account', async () => {
  const connected = { provider: 'listed', secrets: new Uint8Array(1) };
  const deps = {
    ...depsOf({
      async *history({ connectionId }) {
        if (connectionId === 'con_revoked') throw new ProviderError('unanswered', 'api_key_expired');
        yield { attemptId: 'att_unknown', seen: captured };
      },
    }),
    store: {
      ...store,
      listConnections: async () => [
        { ...connected, connectionId: 'con_revoked', merchantId: 'app_live_1' },
        { ...connected, connectionId: 'con_working', merchantId: 'app_live_2' },
      ],
    },
    accountOf: async (connectionId: string) => ({ connectionId }),
  } as unknown as AdvanceDeps;
  const lines: string[] = [];
  const program = new Command();
  addCheckCommand(
    program,
    (work) => work(deps),
    (line) => void lines.push(line),
  );
  const checked = program.parseAsync(['check', '--json'], { from: 'user' });
  await expect(checked).rejects.toThrow(
    'The payments of app_live_1 could not be compared: unanswered: api_key_expired.\n1 payments differ.',
  );
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ difference: 'unknown_attempt' }]);
});

test('a payment that is made while the list of the provider is read is not missing', async () => {
  let attemptId = '';
  const provider = {
    async *history() {
      attemptId = await storePayment('con_meanwhile', 'RECORDED');
      yield* emptyList();
    },
    look: async () => captured,
  };
  expect(await compare('con_meanwhile', provider)).toEqual([]);
  const look = () => Promise.reject(new ProviderError('refused', 'resource_missing'));
  expect(await compare('con_meanwhile', { history: emptyList, look })).toMatchObject([
    { attemptId, difference: 'missing_at_provider' },
  ]);
});

test('a payment that a lost dispute returned agrees, and one whose refund failed does not', async () => {
  const attemptId = await storePayment('con_returned', 'REFUNDED');
  const dispute = { disputeId: 'dp_1', amount: payment.amount, currency: 'EUR', reason: 'fraudulent' };
  const withDisputes = (...statuses: ('LOST' | 'WON')[]) => ({
    async *history() {
      yield { attemptId, seen: captured };
    },
    reversals: async () => ({ refunds: [], disputes: statuses.map((status) => ({ ...dispute, status })) }),
  });
  expect(await compare('con_returned', withDisputes('LOST'))).toEqual([]);
  for (const statuses of [[], ['WON']] as const)
    expect(await compare('con_returned', withDisputes(...statuses))).toMatchObject([
      { attemptId, difference: 'not_recorded' },
    ]);
});

test('a recorded payment whose order the gateway lost is reported until it is refunded', async () => {
  const attemptId = await storePayment('con_restored', 'RECORDED');
  const gateway = {
    resolve: async () => ({ orderStatus: OrderStatus.CANCELLED }),
  } as unknown as AdvanceDeps['gateway'];
  const seenAs = (seen: Seen) =>
    compare(
      'con_restored',
      {
        async *history() {
          yield { attemptId, seen };
        },
      },
      gateway,
    );
  expect(await seenAs(captured)).toMatchObject([{ attemptId, difference: 'not_paid_at_gateway' }]);
  expect(await seenAs({ is: 'refunded' })).toEqual([]);
});

test('a payment that a person refunded agrees, although the provider has its money', async () => {
  const attemptId = await storePayment('con_by_hand', 'REFUNDED');
  await store.run((db) => db.update(attempts).set({ reason: refundedByHand }).where(eq(attempts.attemptId, attemptId)));
  const provider = {
    async *history() {
      yield { attemptId, seen: captured };
    },
    reversals: async () => ({ refunds: [], disputes: [] }),
  };
  expect(await compare('con_by_hand', provider)).toEqual([]);
});

test('a recorded payment that the gateway lost is recorded again, and refunded if it is refused now', async () => {
  const connectionId = 'con_lost';
  const attemptId = await storePayment(connectionId, 'RECORDED');
  await connect(connectionId, new Date(Date.now() - 25 * 3_600_000));
  const deps = {
    ...depsOf({
      async *history() {
        yield { attemptId, seen: captured };
      },
    }),
    gateway: {
      resolve: async () => ({ orderStatus: OrderStatus.CANCELLED }),
      record: async () => ({ refused: 'order_cancelled' }),
    },
    logger: { error() {} },
    metrics: { countDifference() {} },
  } as unknown as AdvanceDeps;
  const states: unknown[] = [];
  const advance = async (id: string) => void states.push((await store.find(id))?.state);
  await createSweep({ ...deps, advance: advance as Advance }).compareNext(new AbortController().signal);
  expect(states).toEqual(['CAPTURED']);
});

test('a recorded payment whose order the gateway no longer has is reported, and not recorded again', async () => {
  const connectionId = 'con_order_lost';
  const attemptId = await storePayment(connectionId, 'RECORDED');
  await connect(connectionId, new Date(Date.now() - 25 * 3_600_000));
  const provider = {
    async *history() {
      yield { attemptId, seen: captured };
    },
  };
  const gateway = { resolve: async () => undefined } as unknown as AdvanceDeps['gateway'];
  expect(await compare(connectionId, provider, gateway)).toMatchObject([
    { attemptId, difference: 'not_paid_at_gateway' },
  ]);
  const logged: unknown[] = [];
  const deps = {
    ...depsOf(provider),
    gateway,
    logger: { error: (fields: unknown) => void logged.push(fields) },
    metrics: { countDifference() {} },
    advance: async () => undefined,
  } as unknown as Parameters<typeof createSweep>[0];
  await createSweep(deps).compareNext(new AbortController().signal);
  expect(logged).toMatchObject([{ attempt_id: attemptId, difference: 'not_paid_at_gateway' }]);
  expect(await store.find(attemptId)).toMatchObject({ state: 'RECORDED' });
});

test('a comparison that fails or is stopped is repeated before the next day', async () => {
  const comparedAt = new Date(Date.now() - 25 * 3_600_000);
  await connect('con_repeated', comparedAt);
  const hoursSince = async () => {
    const connection = await store.findConnection('con_repeated');
    return Math.round((Date.now() - Number(connection?.comparedAt)) / 3_600_000);
  };
  const run = async (history: NonNullable<Provider['history']>, signal = new AbortController().signal) => {
    const isRepeated = eq(connections.connectionId, 'con_repeated');
    await store.run((db) => db.update(connections).set({ comparedAt }).where(isRepeated));
    const sweep = createSweep({ ...depsOf({ history }), advance: async () => undefined });
    return sweep.compareNext(signal);
  };
  const failing = () => {
    throw new ProviderError('unanswered', 'no_response');
  };
  await expect(run(failing)).rejects.toThrow('no_response');
  expect(await hoursSince()).toBe(18);
  await run(async function* () {
    yield { attemptId: 'att_1', seen: captured };
  }, AbortSignal.abort());
  expect(await hoursSince()).toBe(18);
  await run(emptyList);
  expect(await hoursSince()).toBe(0);
});
