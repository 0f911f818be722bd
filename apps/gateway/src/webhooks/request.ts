import { webhookSignature } from '@gateway/domain/webhook-signature';

/** The headers and the body of a webhook request, signed with each secret (Standard Webhooks, "Webhook headers"). */
export function webhookRequest(event: { readonly id: string }, secrets: readonly Uint8Array[], nowMs: number) {
  const body = JSON.stringify(event);
  const timestampSeconds = Math.floor(nowMs / 1_000);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'order-gateway-webhooks',
    'webhook-id': event.id,
    'webhook-timestamp': `${timestampSeconds}`,
    'webhook-signature': webhookSignature({ id: event.id, timestampSeconds, body }, secrets),
  };
  return { headers, body };
}
