import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayAddresses } from '@gateway/fixtures/client';
import { openSender, type Sender } from './sender.ts';

/** The gateway's deadline of a call, and what the way there and back may take. */
const latestMs = 5_250;

const tickMs = 50;
const pollMs = 5;

/** Sends calls to several gateways in turn, and watches their responses. */
export interface WatchingSender extends Sender {
  /** Orders created so far. */
  created(): number;
  /** Responses later than the gateway's deadline and 250 ms. */
  late(): number;
  /** Milliseconds until some or every gateway has created an order that was sent from now on. */
  timeToCreated(which: 'some' | 'every', signal: AbortSignal): Promise<number>;
}

/** Opens a sender with so many connections to each gateway. */
export function createWatchingSender(gateways: readonly GatewayAddresses[], connections: number): WatchingSender {
  const senders = gateways.map((gateway) => openSender(gateway, connections));
  /** When the latest call was sent that created an order at each gateway. */
  const createdAtMs = gateways.map(() => 0);
  let [turn, created, late] = [0, 0, 0];
  // How long this process could do nothing, in all: a response that waited for us was not late.
  let busyMs = 0;
  let tickedMs = performance.now();
  const ticking = setInterval(() => {
    busyMs += Math.max(0, performance.now() - tickedMs - tickMs);
    tickedMs = performance.now();
  }, tickMs);
  return {
    async send(call) {
      turn = (turn + 1) % senders.length;
      const [gateway, sentMs, busyBeforeMs] = [turn, performance.now(), busyMs];
      const reply = await (senders[gateway] as Sender).send(call);
      if (performance.now() - sentMs - (busyMs - busyBeforeMs) > latestMs) late += 1;
      if (reply.outcome === 'created') {
        created += 1;
        createdAtMs[gateway] = Math.max(createdAtMs[gateway] ?? 0, sentMs);
      }
      return reply;
    },
    created: () => created,
    late: () => late,
    async timeToCreated(which, signal) {
      const startMs = performance.now();
      while (!createdAtMs[which]((sentMs) => sentMs >= startMs)) await sleep(pollMs, undefined, { signal });
      return performance.now() - startMs;
    },
    close() {
      clearInterval(ticking);
      for (const one of senders) one.close();
    },
  };
}
