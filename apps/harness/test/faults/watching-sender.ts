import type { GatewayAddresses } from '../../src/gateway/gateway-process.ts';
import { openSender } from '../../src/load/open-sender.ts';
import type { Sender } from '../../src/load/sender.ts';

/** The gateway's deadline of a call, and what the way there and back may take. */
const latestMs = 5_250;

const tickMs = 50;

/** Sends calls to each gateway in turn, and sees when it created orders, and which responses were late. */
export function createWatchingSender(gateways: readonly GatewayAddresses[], connections: number) {
  const senders = gateways.map((gateway) => openSender(gateway, connections));
  /** When the latest call was sent that created an order at each gateway. */
  const createdAtMs = gateways.map(() => 0);
  let turn = 0;
  let late = 0;
  // How long this process could do nothing, in all: a response that waited for us was not late.
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
      if (performance.now() - sentMs - (busyMs - busyBeforeMs) > latestMs) late += 1;
      if (reply.outcome === 'created') createdAtMs[gateway] = Math.max(createdAtMs[gateway] ?? 0, sentMs);
      return reply;
    },
    close() {
      clearInterval(ticking);
      for (const one of senders) one.close();
    },
  };
  return { ...sender, createdAtMs: () => createdAtMs, late: () => late };
}
