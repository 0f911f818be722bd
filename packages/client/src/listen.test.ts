import { afterEach, expect, test, vi } from 'vitest';
import type { GatewayClient } from './calls/client.ts';
import { listen, replay } from './listen.ts';
import type { OrderEvent } from './types.ts';

type Page = Awaited<ReturnType<GatewayClient['listEvents']>>;

test('listen skips all existing events, even after a page that is empty because of the filter', async () => {
  const old = { id: 'evt_old', type: 'order.paid' } as OrderEvent;
  const pages: readonly Page[] = [
    { events: [old], next_cursor: '1' },
    { events: [], next_cursor: '2' },
    { events: [old], next_cursor: '3' },
    { events: [], next_cursor: '3' },
  ];
  const cursors: (string | undefined)[] = [];
  const listening = new AbortController();
  const listEvents = vi.fn<GatewayClient['listEvents']>(async ({ cursor } = {}) => {
    cursors.push(cursor);
    const page = pages[cursors.length - 1];
    if (page === undefined) listening.abort();
    return page ?? { events: [], next_cursor: '3' };
  });
  const lines: string[] = [];
  const print = (line: string) => lines.push(line);
  const types = ['order.paid'] as const;
  const forwardTo = 'http://127.0.0.1:1';
  await listen({ client: { listEvents }, forwardTo, secret: 'whsec_AAAA', types, print, signal: listening.signal });
  expect(cursors).toEqual([undefined, '1', '2', '3', '3']);
  expect(lines).toEqual(['Ready. Waiting for events.']);
});

afterEach(() => {
  vi.unstubAllGlobals();
});

test.each([
  ['2xx', async () => new Response(null, { status: 204 }), '204', true],
  ['another status', async () => new Response(null, { status: 500 }), '500', false],
  ['no response', () => Promise.reject(new TypeError('fetch failed')), 'no response (fetch failed)', false],
])(
  'replay posts the event once, and rejects unless the response is 2xx: %s',
  async (_kind, fetch, result, resolves) => {
    const fetched = vi.fn(fetch);
    vi.stubGlobal('fetch', fetched);
    const event = { id: 'evt_1', type: 'order.paid' } as OrderEvent;
    const listEvents = async () => ({ events: [event], next_cursor: '1' });
    const lines: string[] = [];
    const print = (line: string) => lines.push(line);
    const forwardTo = 'http://127.0.0.1:1';
    const replayed = replay('evt_1', { client: { listEvents }, forwardTo, secret: 'whsec_AAAA', print });
    if (resolves) await replayed;
    else await expect(replayed).rejects.toThrow(`The event was not delivered to ${forwardTo}.`);
    expect([lines, fetched.mock.calls.length]).toEqual([[`evt_1 order.paid ${result}`], 1]);
  },
);
