import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { EventService } from '@order-gateway/contract/gateway/v1/event_service_pb';
import type { Credentials } from '@order-gateway/domain/accounts';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { endProcesses, type GatewayProcess, sampleMemory, startProcess } from '../../helpers/gateway-process.ts';
import { grpcClient } from '../../helpers/grpc/rpc-clients.ts';
import { callJson, createOrder, credentialHeaders } from '../../helpers/send-order.ts';

const database = useTestDatabase();
afterAll(endProcesses);

const seconds = Number(process.env.WATCH_SECONDS ?? 300);
const [merchantCount, streamsEach, changesPerSecond] = [20, 5, 1_000];
/** The interval between statements, each of which stores events of all merchants. */
const storeEveryMs = 100;

/** A stream that reconnects to the other gateway, with the cursor of its last message. */
interface Watch {
  readonly merchant: number;
  readonly received: string[];
  connections: number;
  /** The reader waits for this after each message. Set only for the reader that stalls. */
  resumed?: Promise<void>;
}

test('100 streams see every event in feed order, even while a reader stalls and a gateway is killed and drained', async () => {
  const accounts = openAccountAdmin(database.options);
  onTestFinished(() => accounts.close());
  const start = () => startProcess({ DATABASE_URL: database.url });
  const gateways: [GatewayProcess, GatewayProcess] = [await start(), await start()];
  const merchants = await Promise.all(Array.from({ length: merchantCount }, () => accounts.create('Shop')));
  for (const credentials of merchants) {
    const shop = { url: gateways[0].url, credentials };
    await createOrder(shop, 'watched');
    await callJson(shop, 'POST', '/order/watched/cancel');
  }

  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const watches = Array.from(
    { length: merchantCount * streamsEach },
    (_, index): Watch => ({ merchant: index % merchantCount, received: [], connections: 0 }),
  );
  const unexpected: string[] = [];
  const run = async (watch: Watch, index: number) => {
    const headers = credentialHeaders(merchants[watch.merchant] ?? { clientId: '', clientSecret: '' });
    let cursor: string | undefined;
    while (!ending.signal.aborted) {
      const gateway = gateways[(index + watch.connections) % 2] as GatewayProcess;
      watch.connections += 1;
      try {
        // Each connection has its own client, so that a reader that stalls delays no other reader.
        const request = cursor === undefined ? {} : { cursor };
        const stream = grpcClient(EventService, gateway).watchEvents(request, { headers, signal: ending.signal });
        for await (const message of stream) {
          if (message.event !== undefined) watch.received.push(message.event.id);
          cursor = message.cursor;
          await watch.resumed;
        }
      } catch (error) {
        const { code, rawMessage } = ConnectError.from(error);
        // Connect reports a lost connection as UNAVAILABLE, INTERNAL or ABORTED. Reading a page can
        // exceed its deadline if the database is busy.
        const expected = [Code.Unavailable, Code.Internal, Code.Aborted, Code.Canceled, Code.DeadlineExceeded];
        if (!expected.includes(code)) unexpected.push(`${Code[code]}: ${rawMessage}`);
        await sleep(50);
      }
    }
  };
  const running = watches.map(run);
  await expect.poll(() => watches.every(({ received }) => received.length === 1)).toBe(true);

  const memory = sampleMemory(gateways[0].child, 500);
  const resumed = Promise.withResolvers<void>();
  for (const watch of watches.slice(0, 1)) watch.resumed = resumed.promise;
  const eventsPerInsert = (changesPerSecond * storeEveryMs) / 1_000 / merchantCount;
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1_000;
  let storedEach = 0;
  const change = async () => {
    for (let count = 1; elapsed() < seconds; count += 1) {
      await database.sql`insert into events (merchant_id, event_id, type, created_at, order_id)
        select merchant_id, 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(md5(random()::text), 19),
          'order.cancelled', now(), order_id
        from orders cross join generate_series(1, ${eventsPerInsert})`;
      storedEach += eventsPerInsert;
      await sleep(Math.max(0, count * storeEveryMs - 1_000 * elapsed()));
    }
  };
  const killAndDrain = async () => {
    await sleep((seconds * 1_000) / 3);
    gateways[1].child.kill('SIGKILL');
    gateways[1] = await start();
    await sleep((seconds * 1_000) / 3);
    gateways[1].child.kill('SIGTERM');
    gateways[1] = await start();
  };
  await Promise.all([change(), killAndDrain()]);
  const storedPerSecond = Math.round((storedEach * merchantCount) / elapsed());
  resumed.resolve();
  const isComplete = ({ received }: Watch) => new Set(received).size >= storedEach + 1;
  const incomplete = () => watches.filter((watch) => !isComplete(watch)).length;
  await expect.poll(incomplete, { interval: 500, timeout: 1_000 * seconds }).toBe(0);
  const catchUpSeconds = Math.round(elapsed() - seconds);
  ending.abort();
  await Promise.all(running);

  const quarter = Math.floor(memory.length / 4);
  const [early = 0, late = 0] = [memory.slice(quarter, 2 * quarter), memory.slice(-quarter)].map((part) =>
    Math.max(...part),
  );
  const duplicates = watches.reduce((sum, { received }) => sum + received.length - new Set(received).size, 0);
  const connections = watches.reduce((sum, watch) => sum + watch.connections, 0);
  process.stdout.write(
    `${storedPerSecond} changes/s for ${seconds} s to ${watches.length} streams, complete ${catchUpSeconds} s later; ` +
      `${connections} connections, ${duplicates} duplicates; ` +
      `memory at most ${early} MiB in the second quarter, ${late} MiB in the last\n`,
  );
  expect(unexpected).toEqual([]);
  for (const [merchant, credentials] of merchants.entries()) {
    const feed = await readFeed(gateways[0].url, credentials);
    expect(feed).toHaveLength(storedEach + 1);
    for (const watch of watches.filter((candidate) => candidate.merchant === merchant))
      expect([...new Set(watch.received)]).toEqual(feed);
  }
  expect(late).toBeLessThan(early * 1.3);
});

/** Returns the ids of all events of a merchant, in feed order. */
async function readFeed(url: string, credentials: Credentials): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await callJson({ url, credentials }, 'GET', `/events?limit=100&cursor=${cursor}`);
    if (body.events.length === 0) return ids;
    ids.push(...body.events.map(({ id }: { id: string }) => id));
    cursor = body.next_cursor;
  }
}
