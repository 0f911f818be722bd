import { requestTimeoutMs } from '@gateway/fixtures/client';
import type { OperationName } from '@gateway/fixtures/operations';
import { Pool } from 'undici';
import type { HttpReply } from './replies.ts';
import { failedReply, type Reply, type Sender } from './sender.ts';

/** Sends over HTTP/1.1, one call at a time on each connection; calls beyond that wait for a free one. */
export function createHttpSender(
  httpUrl: string,
  connections: number,
  readReply: (operation: OperationName, reply: HttpReply) => Reply,
): Sender {
  const { origin, pathname } = new URL(httpUrl);
  const base = pathname.replace(/\/$/, '');
  const pool = new Pool(origin, { connections, pipelining: 1 });
  return {
    async send({ operation, method, path, headers, body }) {
      try {
        // The signal, not the pool's own timeouts: those begin when a call gets its connection.
        const signal = AbortSignal.timeout(requestTimeoutMs);
        const sent = { path: `${base}${path}`, method, headers, body: body.length === 0 ? null : body, signal };
        const response = await pool.request(sent);
        const read = Buffer.from(await response.body.arrayBuffer());
        return readReply(operation, { status: response.statusCode, headers: headersOf(response.headers), body: read });
      } catch (error) {
        return failedReply(error);
      }
    },
    close: () => void pool.destroy(),
  };
}

/** Converts received headers, of HTTP/1.1 or HTTP/2, to the standard form. */
export function headersOf(received: Readonly<Record<string, unknown>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(received)) {
    if (!name.startsWith(':') && value !== undefined) headers.set(name, String(value));
  }
  return headers;
}
