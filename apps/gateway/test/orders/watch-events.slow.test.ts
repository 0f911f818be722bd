import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { EventService } from '@order-gateway/contract/gateway/v1/event_service_pb';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import postgres from 'postgres';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { endProcesses, type GatewayProcess, residentMiB, startProcess } from '../helpers/gateway-process.ts';
import { grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { callJson, createOrder, credentialHeaders } from '../helpers/send-order.ts';

afterAll(endProcesses);

const seconds = Number(process.env.WATCH_SECONDS ?? 300);
const [merchantCount, streamsEach, changesPerSecond] = [20, 5, 1_000];
/** Events of every merchant are stored together, this often. */
const storeEveryMs = 100;

/** A stream that reconnects, with the cursor of its last message, to the next gateway. */
interface Watch {
  readonly merchant: number;
  readonly received: string[];
  connections: number;
  /** Set while its reader has stopped reading. */
  stopped?: Promise<void> | undefined;
}

test('100 streams see every event in feed order, while one reader stops and a gateway is killed and drained', async () => {
  const database = await createMigratedDatabase();
  const sql = postgres(database.url, { max: 2, onnotice: () => {} });
  const accounts = openAccountAdmin({ url: database.url });
  onTestFinished(async () => {
    await accounts.close();
    await sql.end({ timeout: 1 });
    await database.drop();
  });
  const start = () => startProcess({ DATABASE_URL: database.url });
  const gateways: [GatewayProcess, GatewayProcess] = [await start(), await start()];
  const merchants = await Promise.all(Array.from({ length: merchantCount }, () => accounts.create('Shop')));
  for (const credentials of merchants) {
    const shop = { url: gateways[0].url, credentials };
    await createOrder(shop, 'watched');
    await callJson(shop, 'POST', '/order/watched/cancel');
  }

  const over = new AbortController();
  onTestFinished(() => over.abort());
  const watches = Array.from(
    { length: merchantCount * streamsEach },
    (_, index): Watch => ({ merchant: index % merchantCount, received: [], connections: 0 }),
  );
  const unexpected: string[] = [];
  const run = async (watch: Watch, index: number) => {
    const headers = credentialHeaders(merchants[watch.merchant] ?? { clientId: '', clientSecret: '' });
    let cursor: string | undefined;
    while (!over.signal.aborted) {
      const gateway = gateways[(index + watch.connections) % 2] as GatewayProcess;
      watch.connections += 1;
      try {
        // A client for each connection, so that a reader that stops delays no other.
        const request = cursor === undefined ? {} : { cursor };
        const stream = grpcClient(EventService, gateway).watchEvents(request, { headers, signal: over.signal });
        for await (const message of stream) {
          if (message.event !== undefined) watch.received.push(message.event.id);
          cursor = message.cursor;
          await watch.stopped;
        }
      } catch (error) {
        const { code, rawMessage } = ConnectError.from(error);
        // A lost connection is UNAVAILABLE, INTERNAL or ABORTED in Connect's terms. A page of a busy database may take too
        // long.
        const ends = [Code.Unavailable, Code.Internal, Code.Aborted, Code.Canceled, Code.DeadlineExceeded];
        const isEnd = ends.includes(code);
        if (!isEnd) unexpected.push(`${Code[code]}: ${rawMessage}`);
        await sleep(50);
      }
    }
  };
  const running = watches.map(run);
  await expect.poll(() => watches.every(({ received }) => received.length === 1)).toBe(true);

  const memory: number[] = [];
  const watching = setInterval(() => memory.push(residentMiB(gateways[0].child.pid)), 500);
  onTestFinished(() => clearInterval(watching));
  const stopped = Promise.withResolvers<void>();
  for (const watch of watches.slice(0, 1)) watch.stopped = stopped.promise;
  const each = (changesPerSecond * storeEveryMs) / 1_000 / merchantCount;
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1_000;
  let stored = 0;
  const change = async () => {
    for (let turn = 1; elapsed() < seconds; turn += 1) {
      await sql`insert into events (merchant_id, event_id, type, created_at, order_id)
        select merchant_id, 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(md5(random()::text), 19),
          'order.cancelled', now(), order_id
        from orders cross join generate_series(1, ${each})`;
      stored += each;
      await sleep(Math.max(0, turn * storeEveryMs - 1_000 * elapsed()));
    }
  };
  const disturb = async () => {
    await sleep((seconds * 1_000) / 3);
    gateways[1].child.kill('SIGKILL');
    gateways[1] = await start();
    await sleep((seconds * 1_000) / 3);
    gateways[1].child.kill('SIGTERM');
    gateways[1] = await start();
  };
  await Promise.all([change(), disturb()]);
  const storedPerSecond = Math.round((stored * merchantCount) / elapsed());
  stopped.resolve();
  const isComplete = ({ received }: Watch) => new Set(received).size >= stored + 1;
  const incomplete = () => watches.filter((watch) => !isComplete(watch)).length;
  await expect.poll(incomplete, { interval: 500, timeout: 1_000 * seconds }).toBe(0);
  const lastSeconds = Math.round(elapsed() - seconds);
  over.abort();
  await Promise.all(running);

  const quarter = Math.floor(memory.length / 4);
  const [early = 0, late = 0] = [memory.slice(quarter, 2 * quarter), memory.slice(-quarter)].map((part) =>
    Math.max(...part),
  );
  const copies = watches.reduce((sum, { received }) => sum + received.length - new Set(received).size, 0);
  const connections = watches.reduce((sum, watch) => sum + watch.connections, 0);
  process.stdout.write(
    `${storedPerSecond} changes/s for ${seconds} s to ${watches.length} streams, complete ${lastSeconds} s later; ` +
      `${connections} connections, ${copies} copies; ` +
      `memory at most ${early} MiB in the second quarter, ${late} MiB in the last\n`,
  );
  expect(unexpected).toEqual([]);
  for (const [merchant, credentials] of merchants.entries()) {
    const feed = await readFeed(gateways[0].url, credentials);
    expect(feed).toHaveLength(stored + 1);
    for (const watch of watches.filter((open) => open.merchant === merchant))
      expect([...new Set(watch.received)]).toEqual(feed);
  }
  expect(late).toBeLessThan(early * 1.3);
});

/** The ids of all events of a merchant, in feed order. */
async function readFeed(url: string, credentials: Parameters<typeof credentialHeaders>[0]): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await callJson({ url, credentials }, 'GET', `/events?limit=100&cursor=${cursor}`);
    if (body.events.length === 0) return ids;
    ids.push(...body.events.map(({ id }: { id: string }) => id));
    cursor = body.next_cursor;
  }
}
