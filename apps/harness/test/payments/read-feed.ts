import { createClient, type OrderEvent } from '@order-gateway/client';
import type { Credentials } from '@order-gateway/domain/accounts';

/** The number of events in a merchant's feed, by type, and the violations in the feed. */
export interface ReadFeed {
  readonly counts: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/**
 * Reads all pages of a merchant's feed. It is a violation if an event appears twice, if a refused payment has two
 * events, or if the last refused payment in such an event is not the one that the event announces.
 */
export async function readFeed(httpUrl: string, credentials: Credentials): Promise<ReadFeed> {
  // The client repeats calls that a busy machine does not serve in time.
  const client = createClient({ baseUrl: httpUrl, ...credentials, retries: 10 });
  const events: OrderEvent[] = [];
  for (let cursor = ''; ; ) {
    const page = await client.listEvents({ limit: 100, cursor });
    events.push(...page.events);
    cursor = page.next_cursor;
    if (page.events.length === 0) break;
  }
  const violations =
    new Set(events.map(({ id }) => id)).size === events.length ? [] : ['an event is in the feed twice'];
  const announced = events.flatMap(({ type, timestamp, data }) => {
    if (type !== 'order.payment_refused') return [];
    const last = data.refused_payments?.at(-1);
    if (last?.refused_at !== timestamp) violations.push(`${data.order_id} does not show the refused payment last`);
    return [`${data.order_id} ${last?.payment_id}`];
  });
  if (new Set(announced).size !== announced.length) violations.push('a refused payment is announced twice');
  return {
    counts: Object.fromEntries(
      Map.groupBy(events, ({ type }) => type)
        .entries()
        .map(([type, eventsOfType]) => [type, eventsOfType.length]),
    ),
    violations,
  };
}
