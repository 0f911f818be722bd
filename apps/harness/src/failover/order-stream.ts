import { setTimeout as sleep } from 'node:timers/promises';
import type { Credentials } from '@gateway/domain/credentials';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import postgres from 'postgres';

/** Calls in flight at each gateway, and the pause of each between two calls. */
const callsAtOnce = 8;
const pauseMs = 20;

/** Longer than a call may take: one without a response by then hangs. */
const hangsAfterMs = 10_000;

/** Orders that a gateway acknowledged. */
interface Acknowledged {
  readonly orderId: string;
  readonly serviceOrderId: number;
  /** By `performance.now()`. */
  readonly at: number;
}

/** New orders, sent to several gateways all the time. */
export interface OrderStream {
  readonly acknowledged: readonly Acknowledged[];
  /** How many calls ended with each other code. */
  readonly errors: Readonly<Record<string, number>>;
  /** Resolves with the time from now to the next order that is sent and acknowledged after now. */
  timeToNextOrder(): Promise<number>;
  /** Stops sending; resolves when every call has its response. */
  stop(): Promise<void>;
}

/** Sends orders of each merchant to each gateway. */
export function startOrderStream(httpUrls: readonly string[], merchants: readonly Credentials[]): OrderStream {
  const acknowledged: Acknowledged[] = [];
  const errors: Record<string, number> = {};
  let sent = 0;
  let isOver = false;
  let onAcknowledged = (_sentAt: number) => {};

  async function send(httpUrl: string, { clientId, clientSecret }: Credentials): Promise<void> {
    sent += 1;
    const orderId = `stream-${sent}`;
    const sentAt = performance.now();
    try {
      const response = await fetch(`${httpUrl}/order`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-client-id': clientId, 'x-client-secret': clientSecret },
        body: JSON.stringify(validOrderInput({ order_id: orderId })),
        signal: AbortSignal.timeout(hangsAfterMs),
      });
      const body = (await response.json()) as { service_order_id: number; code: string };
      if (response.status === 201) {
        acknowledged.push({ orderId, serviceOrderId: body.service_order_id, at: performance.now() });
        onAcknowledged(sentAt);
      } else errors[body.code] = (errors[body.code] ?? 0) + 1;
    } catch (error) {
      const name = (error as Error).name;
      errors[name] = (errors[name] ?? 0) + 1;
    }
  }

  async function sendAll(httpUrl: string, index: number): Promise<void> {
    const merchant = merchants[index % merchants.length];
    while (!isOver && merchant !== undefined) {
      await send(httpUrl, merchant);
      await sleep(pauseMs);
    }
  }

  const sending = httpUrls.flatMap((httpUrl) =>
    Array.from({ length: callsAtOnce }, (_, index) => sendAll(httpUrl, index)),
  );
  return {
    acknowledged,
    errors,
    timeToNextOrder() {
      const from = performance.now();
      return new Promise((resolve) => {
        onAcknowledged = (sentAt) => {
          if (sentAt >= from) resolve(performance.now() - from);
        };
      });
    },
    async stop() {
      isOver = true;
      await Promise.all(sending);
    },
  };
}

/** What the database has of acknowledged orders. */
export interface StreamAudit {
  readonly acknowledged: number;
  /** Not stored, or with another service_order_id. */
  readonly lost: number;
  /** Ids that more than one stored order has, of whichever merchant. */
  readonly doubled: number;
}

/** Compares what was acknowledged with what a server has. */
export async function auditStream({ acknowledged }: OrderStream, databaseUrl: string): Promise<StreamAudit> {
  const session = postgres(databaseUrl, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    const rows = await session`select order_id, service_order_id from orders`;
    const idOf = new Map(rows.map(({ order_id, service_order_id }) => [order_id, Number(service_order_id)]));
    const lost = acknowledged.filter(({ orderId, serviceOrderId }) => idOf.get(orderId) !== serviceOrderId);
    const ids = new Set(rows.map(({ service_order_id }) => service_order_id));
    return { acknowledged: acknowledged.length, lost: lost.length, doubled: rows.length - ids.size };
  } finally {
    await session.end({ timeout: 1 });
  }
}
