import * as http from 'node:http';
import * as https from 'node:https';
import { text } from 'node:stream/consumers';
import { type OutgoingCall, requestTimeoutMs } from './client.ts';

/** What came back over HTTP, read to its end. */
interface HttpAnswerText {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

/** HTTP/1.1 to one gateway, with connections of its own: what one door's client does to a connection no other door feels. */
export interface HttpExchange {
  /** Sends a call to a path and reads the answer. Rejects when there is none within the deadline. */
  send(path: string, call: OutgoingCall): Promise<HttpAnswerText>;
  close(): void;
}

export function createHttpExchange(httpUrl: string): HttpExchange {
  const { Agent, request } = httpUrl.startsWith('https:') ? https : http;
  const agent = new Agent({ keepAlive: true });
  return {
    async send(path, call) {
      const length = call.bytes === undefined ? {} : { 'content-length': call.bytes.length };
      const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
      const outgoing = request(`${httpUrl}${path}`, {
        agent,
        method: call.method,
        headers: { ...call.headers, ...length },
        signal: AbortSignal.timeout(requestTimeoutMs),
      });
      outgoing.once('response', resolve);
      // A gateway may answer and hang up while the body is still on its way; what was answered counts.
      outgoing.on('error', reject);
      outgoing.end(call.bytes);
      const response = await promise;
      return { status: response.statusCode ?? 0, headers: headersOf(response), bodyText: await text(response) };
    },
    close: () => agent.destroy(),
  };
}

/** Why there was no answer. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${causeOf(error.cause)}` : error.message;
}

function headersOf({ headersDistinct }: http.IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headersDistinct).map(([name, values = []]) => [name, values.join(', ')]));
}
