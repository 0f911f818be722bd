import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';
import { isInstalled } from './programs.ts';
import { countedIn, sendJsonByWrk } from './senders.ts';

const hasWrk = await isInstalled('wrk');
leftOut('the report of wrk', hasWrk ? undefined : 'wrk is not installed');

test.runIf(hasWrk)(
  'a connection that broke takes nothing from the answers of wrk',
  async () => {
    const concurrency = 2;
    const came = { answers: 0, breaks: 0 };
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        const breaks = (came.answers + came.breaks) % 5 === 4;
        came[breaks ? 'breaks' : 'answers'] += 1;
        if (breaks) request.socket.destroy();
        else response.writeHead(201).end('{}');
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = Object(server.address());
    const credentials = { clientId: 'app_1', clientSecret: 'sk_1' };
    const { answers, failed } = await sendJsonByWrk({ port, concurrency, seconds: 1, run: 'run-1', credentials });
    expect(came.breaks).toBeGreaterThan(concurrency);
    expect(failed).toBeGreaterThan(concurrency);
    // What was on its way at the end is not seen.
    expect(answers).toBeGreaterThanOrEqual(came.answers - concurrency);
    expect(answers).toBeLessThanOrEqual(came.answers);
  },
  30_000,
);

test.each(['order.lua', 'order.sql', 'lone-insert.ts', 'growth.ts'])(
  '%s has the order that all senders send',
  async (file) => {
    const text = await readFile(new URL(file, import.meta.url), 'utf8');
    const { order_id: _, ...values } = validOrderInput();
    for (const value of Object.values(values)) expect(text).toContain(String(value));
  },
);

test('on a schedule, pgbench is judged by all that was due in the counted time, also what ended after it or never began', () => {
  // Due every 100 ms from second 10 on: two seconds settle, three count, and the rest is sent on.
  const dueUntil = (endMs: number) =>
    Array.from({ length: (endMs - 10_000) / 100 }, (_, at) => ({ dueMs: 10_000 + at * 100, tookMs: 5 }));
  const late = { dueMs: 14_900, tookMs: 4_000 };
  const all = [...dueUntil(14_900), late, ...dueUntil(18_000).filter(({ dueMs }) => dueMs > 14_900)];
  expect(countedIn(all, { rate: 10, seconds: 3 })).toEqual({
    ...{ answers: 30, failed: 0, durationMs: 3_000, p50Ms: 5, p99Ms: 4_000 },
  });
  expect(countedIn(dueUntil(14_000), { rate: 10, seconds: 3 })).toMatchObject({ answers: 20, failed: 10 });
});
