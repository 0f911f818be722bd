import { type OutgoingCall, requestTimeoutMs } from './client.ts';

/** What came back over HTTP, read to its end. */
export interface HttpExchange {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyText: string;
}

/** Sends one HTTP/1.1 request and reads the answer. Rejects when there is none within the deadline. */
export async function exchange(url: string, call: OutgoingCall): Promise<HttpExchange> {
  const response = await fetch(url, {
    method: call.method,
    headers: { ...call.headers },
    // Bytes and not text: fetch makes a content-type of its own for text, and some fixtures send none.
    body: call.bytes ?? null,
    redirect: 'manual',
    signal: AbortSignal.timeout(requestTimeoutMs),
  });
  return { status: response.status, headers: Object.fromEntries(response.headers), bodyText: await response.text() };
}

/** Why there was no answer, down to the cause that fetch wraps. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${causeOf(error.cause)}` : error.message;
}
