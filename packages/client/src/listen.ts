import type { GatewayClient } from './calls/client.ts';
import { GatewayError } from './errors.ts';
import { signatureOf } from './signatures/signatures.ts';
import type { EventType, OrderEvent } from './types.ts';

/** The options of {@link listen} and {@link replay}. */
export interface ListenOptions {
  readonly client: Pick<GatewayClient, 'listEvents'>;
  /** Each event is posted to this address. */
  readonly forwardTo: string;
  /** The signing secret with which each event is signed: `whsec_…`. */
  readonly secret: string;
  /** The types to forward. If absent, all types are forwarded. */
  readonly types?: readonly EventType[] | undefined;
  /** Receives each line of output: one when `listen` is ready, one per event, and one if the cursor has expired. */
  readonly print: (line: string) => void;
  /** Stops listening once it aborts and the request in flight has finished. */
  readonly signal?: AbortSignal;
}

/** The maximum number of events on a page, and how long the gateway waits for the first one. */
const page = { limit: 100, waitSeconds: 20 } as const;

/** The time limit for a response from the local program. The gateway applies the same limit to an endpoint. */
const forwardTimeoutMs = 15_000;

/** The pause after an empty page, in case the gateway did not wait. */
const pauseMs = 1_000;

/** Posts each new event of the feed, signed like a webhook, until the signal aborts. Existing events are skipped. */
export async function listen(options: ListenOptions): Promise<void> {
  const { client, types, print, signal } = options;
  let cursor = await endOfFeed(options);
  print('Ready. Waiting for events.');
  while (!signal?.aborted) {
    try {
      const startedAt = Date.now();
      const { events, next_cursor } = await client.listEvents({ ...page, types, cursor });
      for (const event of events) print((await forward(event, options)).line);
      cursor = next_cursor;
      if (events.length > 0 || Date.now() - startedAt > pauseMs) continue;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    } catch (error) {
      if (!(error instanceof GatewayError && error.code === 'cursor_expired')) throw error;
      print('The cursor has expired: events may be missing. Continuing with new events.');
      cursor = await endOfFeed(options);
    }
  }
}

/**
 * Posts one event of the feed, of any type. Rejects if the feed does not contain the event, or if the response is not
 * 2xx.
 */
export async function replay(eventId: string, options: ListenOptions): Promise<void> {
  for await (const event of eventsOf(options)) {
    if (event.id !== eventId) continue;
    const { line, isDelivered } = await forward(event, options);
    options.print(line);
    if (!isDelivered) throw new Error(`The event was not delivered to ${options.forwardTo}.`);
    return;
  }
  throw new Error(`The event feed has no event ${eventId}. Events are stored for 30 days.`);
}

async function endOfFeed({ client, types }: ListenOptions): Promise<string> {
  let cursor: string | undefined;
  for (;;) {
    const { next_cursor } = await client.listEvents({ limit: page.limit, types, cursor });
    // Only an unchanged cursor shows the end. A page before it can be empty too, if `types` excludes a long run of
    // events, but then its cursor differs from the previous one.
    if (next_cursor === cursor) return next_cursor;
    cursor = next_cursor;
  }
}

async function* eventsOf({ client }: ListenOptions): AsyncGenerator<OrderEvent, void> {
  let cursor: string | undefined;
  for (;;) {
    const { events, next_cursor } = await client.listEvents({ limit: page.limit, cursor });
    if (events.length === 0) return;
    yield* events;
    cursor = next_cursor;
  }
}

/** Posts an event according to Standard Webhooks. Returns the line to print, and whether the response was 2xx. */
async function forward(event: OrderEvent, { forwardTo, secret }: ListenOptions) {
  const body = JSON.stringify(event);
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const headers = {
    'content-type': 'application/json',
    'webhook-id': event.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${await signatureOf(`${event.id}.${timestamp}.${body}`, secret)}`,
  };
  const signal = AbortSignal.timeout(forwardTimeoutMs);
  const result = await fetch(forwardTo, { method: 'POST', headers, body, redirect: 'manual', signal }).then(
    async (response) => {
      await response.body?.cancel();
      return { text: String(response.status), isDelivered: response.ok };
    },
    (error: Error) => ({ text: `no response (${Object(error.cause).code ?? error.message})`, isDelivered: false }),
  );
  return { line: `${event.id} ${event.type} ${result.text}`, isDelivered: result.isDelivered };
}
