import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { SelfSigned } from '@order-gateway/postgres/testing/self-signed';
import { onTestFinished } from 'vitest';

export interface ReceivedWebhook {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly receivedMs: number;
}

/** A merchant's server that receives webhooks. */
export interface WebhookReceiver {
  /** The host of this URL is 127.0.0.1, or `localhost` over TLS. */
  readonly url: string;
  readonly received: readonly ReceivedWebhook[];
  /** The number of TCP connections opened so far. */
  connections(): number;
  close(): Promise<void>;
}

interface ReceiverOptions {
  readonly respond?: (request: ReceivedWebhook, response: ServerResponse) => void;
  readonly tls?: SelfSigned | undefined;
}

/** Starts a receiver, and closes it when the test has finished. */
export async function runWebhookReceiver(options?: ReceiverOptions): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver(options);
  onTestFinished(receiver.close);
  return receiver;
}

/** Starts a receiver on a free port. `respond` writes each response; without it, every response is 204. */
export async function startWebhookReceiver({
  respond = (_request, response) => void response.writeHead(204).end(),
  tls,
}: ReceiverOptions = {}): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request).catch(() => undefined);
    // The connection ended before the whole webhook had arrived.
    if (body === undefined) return;
    const { method = '', url: path = '', headers } = request;
    const webhook = { method, path, headers, body, receivedMs: performance.now() };
    received.push(webhook);
    respond(webhook, response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: tls === undefined ? `http://127.0.0.1:${port}/hook` : `https://localhost:${port}/hook`,
    received,
    connections: () => connections,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
