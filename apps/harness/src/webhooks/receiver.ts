import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventTypes } from '@order-gateway/domain/events';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';

interface Delivery {
  readonly orderId: string;
  readonly type: string;
  readonly body: string;
  copies: number;
}

/** Receives the webhooks of a run's merchants. */
export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

const eventSchema = z.object({
  id: z.string(),
  type: z.enum(eventTypes),
  timestamp: z.iso.datetime({ offset: true }),
  data: z.object({ order_id: z.string() }),
});

/**
 * Starts a receiver on a free port of 127.0.0.1. It records a webhook before it responds. The body of an event must not
 * change, except that a version that does not know `addedMembers` omits them.
 */
export async function startWebhookReceiver(addedMembers: readonly string[] = []) {
  const secrets = new Map<string, Webhook>();
  /** The webhooks with a correct signature, by `webhook-id`. */
  const deliveries = new Map<string, Delivery>();
  /**
   * Why webhooks were rejected, such as a wrong signature, a body that is not an event, or a different body under the
   * same id.
   */
  const rejected: string[] = [];

  const receive = (path: string, headers: Record<string, string>, body: string) => {
    const webhook = secrets.get(path);
    if (webhook === undefined) throw new Error(`no merchant has a webhook endpoint at ${path}`);
    const event = eventSchema.parse(webhook.verify(body, headers));
    if (event.id !== headers['webhook-id'])
      throw new Error(`the event ${event.id} arrived as ${headers['webhook-id']}`);
    const earlier = deliveries.get(event.id);
    if (earlier === undefined) {
      deliveries.set(event.id, { orderId: event.data.order_id, type: event.type, body, copies: 1 });
    } else if (areSame(earlier.body, body, addedMembers)) earlier.copies += 1;
    else throw new Error(`the event ${event.id} arrived again with a different body: ${body} after ${earlier.body}`);
  };

  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    // The connection ended before the whole webhook had arrived, such as that of a killed gateway.
    if (body === undefined) return;
    try {
      receive(request.url ?? '', request.headers as Record<string, string>, body);
      response.writeHead(204).end();
    } catch (error) {
      rejected.push(String(error));
      response.writeHead(400).end();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const pathOf = (merchant: number) => `/webhooks/${merchant}`;
  return {
    /** The address to set as a merchant's endpoint. */
    url: (merchant: number) => `http://127.0.0.1:${port}${pathOf(merchant)}`,
    /** Sets the signing secret of a merchant, `whsec_…`. */
    trust: (merchant: number, secret: string) => void secrets.set(pathOf(merchant), new Webhook(secret)),
    deliveries,
    rejected,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Compares the bodies of two deliveries of an event, without the added members that only one of them has. */
function areSame(earlier: string, body: string, addedMembers: readonly string[]): boolean {
  const has = (text: string) => (member: string) => text.includes(`"${member}":`);
  const omitted = addedMembers.filter((member) => has(earlier)(member) !== has(body)(member));
  const known = (text: string) =>
    JSON.stringify(JSON.parse(text, (member, value) => (omitted.includes(member) ? undefined : value)));
  return known(earlier) === known(body);
}
