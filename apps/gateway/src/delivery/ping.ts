import { randomUUID } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import { formatTime } from '@order-gateway/domain/orders';
import { failed, success } from '@order-gateway/domain/result';
import { webhookLimits } from '../limits.ts';
import type { Ping } from '../operations/operation.ts';
import { type Sender, webhookRequest } from './send.ts';

/** The headers and the body of a test message. */
function testMessage(signingSecrets: readonly Uint8Array[], nowMs: number) {
  const event = { id: `evt_test_${randomUUID()}`, type: 'webhook.test', timestamp: formatTime(nowMs), data: {} };
  return webhookRequest(event, signingSecrets, nowMs);
}

/**
 * Creates the sender of test messages. It limits the messages in flight, because each holds a call until its endpoint
 * responds.
 */
export function createPing(sender: Pick<Sender, 'send'>, now: () => number): Ping {
  const inFlight: AccountId[] = [];
  const { pingsMax, pingsPerMerchant, pingTimeoutMs } = webhookLimits;
  return async (merchantId, url, signingSecrets) => {
    const ofMerchant = inFlight.filter((id) => id === merchantId).length;
    if (ofMerchant >= pingsPerMerchant) return failed({ kind: 'rate_limited', retryAfterMs: pingTimeoutMs });
    if (inFlight.length >= pingsMax) return failed({ kind: 'overloaded', retryAfterMs: pingTimeoutMs });
    inFlight.push(merchantId);
    try {
      const { headers, body } = testMessage(signingSecrets, now());
      return success(await sender.send(url, headers, body));
    } finally {
      inFlight.splice(inFlight.indexOf(merchantId), 1);
    }
  };
}
