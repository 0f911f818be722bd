import { text } from 'node:stream/consumers';
import { success } from '@order-gateway/domain/result';
import { expect, test } from 'vitest';
import { exportPages } from './export-orders.ts';
import type { Visit } from './visit.ts';

/**
 * Starts an export of three pages. Before each page after the first, the rate limit returns the next of `waits`, and
 * the session store the next of `sessions`. Returns the file, and what the export did.
 */
async function startExport({ waits, sessions }: { waits: (number | undefined)[]; sessions: boolean[] }) {
  const steps: string[] = [];
  let pages = 0;
  const ended = new AbortController();
  const visit = {
    query: new URLSearchParams(),
    call: { beginStream: () => ({ signal: ended.signal }) },
    deps: {
      calls: {
        rateLimit() {
          steps.push('rate limit');
          return waits.shift();
        },
      },
    },
    sessions: {
      async find() {
        steps.push('session');
        return { kind: 'done', value: sessions.shift() ? {} : undefined };
      },
    },
    async perform() {
      steps.push('page');
      pages += 1;
      return success({ orders: [], ...(pages < 3 && { next_cursor: `${pages}` }) });
    },
  } as unknown as Visit;
  const response = await exportPages[0]?.respond(visit);
  if (response?.kind !== 'file') throw new Error('no file');
  return { file: text(response.content), steps, end: () => ended.abort() };
}

test('an export reads no further page once the session has ended, and ends with an error', async () => {
  const { file, steps } = await startExport({ waits: [], sessions: [true, false] });
  await expect(file).rejects.toThrow('the export ended early: unauthenticated');
  expect(steps.filter((step) => step === 'page')).toHaveLength(2);
});

test('each page of an export after the first waits for the rate limit, and then checks the session', async () => {
  const { file, steps } = await startExport({ waits: [1, 1, undefined, 1], sessions: [true, true] });
  expect(await file).toContain('service_order_id');
  const limited = ['rate limit', 'rate limit'];
  expect(steps).toEqual(['page', ...limited, 'rate limit', 'session', 'page', ...limited, 'session', 'page']);
});

// Fastify reads the content of a response to HEAD to its end, although it does not send it.
test('an export reads no further page once its response has ended', async () => {
  const { file, steps, end } = await startExport({ waits: [], sessions: [true, true] });
  end();
  await file;
  expect(steps).toEqual(['page']);
});
