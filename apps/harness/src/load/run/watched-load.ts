import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayAddresses } from '@order-gateway/fixtures/wire';
import type { LoadCall } from '../calls/call-maker.ts';
import { openSender, type Reply, type Sender } from '../calls/sender.ts';
import type { Profile } from '../profile/profile.ts';
import { type LoadRun, runLoad } from './run-load.ts';

/** The gateway's deadline for a call, plus an allowance for the round trip. */
const latestMs = 5_250;

const tickMs = 50;
const pollMs = 5;

/** The load and the accounts that send it. */
export interface WatchedRun extends Pick<LoadRun, 'credentials' | 'checkout'> {
  readonly profile: Profile;
  readonly seed: number;
  /** The database of the gateways, for the commands of operators; required if the profile has some. */
  readonly databaseUrl?: string;
  /** Where the journal is written. */
  readonly folder: string;
  /**
   * Called with the reply to each call, and with the call's duration without the time during which this process was
   * blocked.
   */
  readonly onReply?: (call: LoadCall, reply: Reply, ms: number) => void;
}

/**
 * Sends the calls of a run to several gateways in turn, and watches the responses. `running` settles when the run ends:
 * after its last call, after `end`, or because its journal can't be written.
 */
export function startWatchedLoad(gateways: readonly GatewayAddresses[], run: WatchedRun) {
  const { profile, seed, folder, credentials, checkout, databaseUrl, onReply } = run;
  const senders = gateways.map((gateway) => openSender(gateway, profile.connections, databaseUrl));
  /** For each gateway, when the latest call that created an order was sent. */
  const createdAtMs = gateways.map(() => 0);
  let [turn, created, late] = [0, 0, 0];
  let hasShownChange = false;
  // The total time during which this process was blocked. A response that waited for this process was not late.
  let busyMs = 0;
  let tickedMs = performance.now();
  const ticking = setInterval(() => {
    busyMs += Math.max(0, performance.now() - tickedMs - tickMs);
    tickedMs = performance.now();
  }, tickMs);
  const sender: Sender = {
    async send(call) {
      turn = (turn + 1) % senders.length;
      const [gateway, sentMs, busyBeforeMs] = [turn, performance.now(), busyMs];
      const reply = await (senders[gateway] as Sender).send(call);
      const ms = performance.now() - sentMs - (busyMs - busyBeforeMs);
      if (ms > latestMs && call.operation !== 'FailRefund') late += 1;
      onReply?.(call, reply, ms);
      hasShownChange ||= reply.orders?.some((order) => /^(PAID|CANCELLED)$/.test(order.order_status)) ?? false;
      if (call.operation === 'CreateOrder' && reply.outcome === 'created') {
        created += 1;
        createdAtMs[gateway] = Math.max(createdAtMs[gateway] ?? 0, sentMs);
      }
      return reply;
    },
    close() {
      clearInterval(ticking);
      for (const opened of senders) opened.close();
    },
  };
  const ended = new AbortController();
  const journalFile = join(folder, 'journal.ndjson');
  const settings = { ...profile, profile: 'none', seed };
  const running = runLoad({ settings, sender, credentials, checkout, journalFile }, ended.signal);
  // The caller gets the error when it awaits `running`, and must be able to stop the gateways before that.
  running.catch(() => {});
  return {
    running,
    journalFile,
    /** Orders created so far. */
    created: () => created,
    /** Calls that took more than 250 ms longer than the gateway's deadline, with or without a response. */
    late: () => late,
    /**
     * Waits until one gateway (`some`) or `every` gateway has created an order that was sent after the wait began.
     * Returns the time in milliseconds.
     */
    async timeToCreated(which: 'some' | 'every', signal: AbortSignal): Promise<number> {
      const startMs = performance.now();
      while (!createdAtMs[which]((sentMs) => sentMs >= startMs)) await sleep(pollMs, undefined, { signal });
      return performance.now() - startMs;
    },
    /** Waits until a response has shown a paid or cancelled order. */
    async untilShownChange(signal: AbortSignal): Promise<void> {
      while (!hasShownChange) await sleep(pollMs, undefined, { signal });
    },
    /** Ends the run immediately. */
    end: () => ended.abort(),
  };
}
