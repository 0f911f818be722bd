import { GatewayError, GatewayNetworkError } from '../errors.ts';
import type { ErrorCode, FieldError } from '../types.ts';

/** The gateway's address, the merchant's credentials, and the time limit and retries of a call. */
export interface ClientOptions {
  /** The gateway's address, including its path if it has one: `https://pay.example.com`. */
  readonly baseUrl: string;
  /** `app_…` or `app_test_…`. */
  readonly clientId: string;
  /** `sk_…`. Read it from the environment or a secret store, and never send it to a browser. */
  readonly clientSecret: string;
  /** A replacement for the global `fetch`, for a proxy or for tests. */
  readonly fetch?: typeof globalThis.fetch;
  /** The time limit for one attempt in milliseconds; 10,000 by default, twice the gateway's own limit for a call. */
  readonly timeoutMs?: number;
  /** How many times a failed request is retried; 4 by default, 0 for never. */
  readonly retries?: number;
}

/** Sends a request, retries temporary failures, and returns the JSON of the response. */
export type Send = <Json>(method: Method, path: string, body?: string, options?: SendOptions) => Promise<Json>;

interface SendOptions {
  /** How many seconds the gateway may wait for an event. The time limit of the attempt is extended by this time. */
  readonly waitSeconds?: number | undefined;
  /** Whether the request may be sent again while its outcome is unknown. */
  readonly isRepeatable?: boolean;
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

interface Sent {
  readonly method: Method;
  readonly path: string;
  readonly body: string | undefined;
  readonly options: SendOptions;
}

/** The longest Retry-After that the client waits for. If the gateway asks for more, the error is thrown immediately. */
const retryAfterMaxSeconds = 30;

/** The maximum random wait before the first retry, in milliseconds. It doubles with each retry. */
const backoffMs = 250;

/**
 * Returns the function that sends all requests. It retries after network errors, 408, 429 and 5xx. Before each retry,
 * it waits for the time in Retry-After plus a random part of the backoff ("full jitter"), so that clients do not all
 * retry at the same time.
 */
export function createSend(options: ClientOptions): Send {
  const { fetch = globalThis.fetch, timeoutMs = 10_000, retries = 4 } = options;
  if (!/^https?:\/\//i.test(options.baseUrl)) throw new TypeError('baseUrl must begin with https:// or http://');
  const baseUrl = options.baseUrl.replace(/\/+$/, '');
  const credentials = {
    'x-client-id': headerValue('clientId', options.clientId),
    'x-client-secret': headerValue('clientSecret', options.clientSecret),
  };

  async function attempt(
    { method, path, body, options }: Sent,
    earlierOutcomeUnknown: boolean,
  ): Promise<Partial<Problem>> {
    const { waitSeconds = 0 } = options;
    // Strict handling (RFC 7240) rejects unknown fields. Otherwise, a misspelt order_expires_at would be ignored, and
    // the order might never expire.
    const preferences = [
      ...(body === undefined ? [] : ['handling=strict']),
      ...(options.waitSeconds === undefined ? [] : [`wait=${waitSeconds}`]),
    ];
    const outcomeUnknown = (hasEffect: boolean) => earlierOutcomeUnknown || (hasEffect && method !== 'GET');
    const request: RequestInit = {
      method,
      headers: {
        ...credentials,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(preferences.length > 0 && { prefer: preferences.join(', ') }),
      },
      body: body ?? null,
      // A redirect would carry the secret to another address.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs + 1_000 * waitSeconds),
    };
    let response: Response;
    let text: string;
    try {
      response = await fetch(baseUrl + path, request);
      text = await response.text();
    } catch (cause) {
      throw new GatewayNetworkError(cause, outcomeUnknown(true));
    }
    const json = parseObject(text);
    if (response.ok && json !== undefined) return json;
    throw errorOf(response, json ?? {}, outcomeUnknown(mayHaveEffect(response, json)));
  }

  return async (method, path, body, options = {}) => {
    const { isRepeatable = true } = options;
    let outcomeUnknown = false;
    for (let retry = 0; ; retry += 1) {
      try {
        return (await attempt({ method, path, body, options }, outcomeUnknown)) as never;
      } catch (error) {
        if (retry >= retries || !isTemporary(error) || (!isRepeatable && error.outcomeUnknown)) throw error;
        outcomeUnknown = error.outcomeUnknown;
        const retryAfterMs = error instanceof GatewayError ? 1_000 * (error.retryAfterSeconds ?? 0) : 0;
        await new Promise((resolve) => setTimeout(resolve, retryAfterMs + Math.random() * backoffMs * 2 ** retry));
      }
    }
  };
}

function isTemporary(error: unknown): error is GatewayError | GatewayNetworkError {
  if (!(error instanceof GatewayError)) return error instanceof GatewayNetworkError;
  const { status, retryAfterSeconds = 0 } = error;
  return (status === 408 || status === 429 || status >= 500) && retryAfterSeconds <= retryAfterMaxSeconds;
}

/**
 * Returns the value if it is valid in a header. Otherwise, throws a TypeError without the value: the error of `fetch`
 * would carry the secret into a log.
 */
function headerValue(name: string, value: string): string {
  if (!/^[\x21-\x7e]+$/.test(value ?? '')) throw new TypeError(`${name} is missing or not printable ASCII`);
  return value;
}

/** Iterates over the items of a list, and fetches each page on demand. */
export async function* itemsOf<Page, Item>(
  send: Send,
  path: string,
  filter: Readonly<Record<string, string | number | undefined>>,
  itemsIn: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void, void> {
  let cursor: string | undefined;
  do {
    const page = await send<Page & { readonly next_cursor?: string }>('GET', path + queryOf({ ...filter, cursor }));
    yield* itemsIn(page);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/**
 * Returns `?` and the parameters that have a value, or an empty text if none has one. Throws a TypeError for a value
 * that is neither a text nor a number, and for an empty text, which the gateway would read as absent: a list would
 * contain everything instead of nothing.
 */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    if (value === '' || (typeof value !== 'string' && !Number.isFinite(value))) {
      throw new TypeError(`${name} must be a non-empty text or a number`);
    }
    query.set(name, String(value));
  }
  return query.size > 0 ? `?${query}` : '';
}

function parseObject(text: string): Partial<Problem> | undefined {
  try {
    const json = JSON.parse(text);
    return typeof json === 'object' && json !== null ? json : undefined;
  } catch {
    return undefined;
  }
}

/** The members of an RFC 9457 problem document that the client uses. */
interface Problem {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly request_id: string;
  readonly errors: readonly FieldError[];
  readonly fields: readonly string[];
}

/** Whether a failed request may have taken effect. A successful response that is not JSON comes from a proxy. */
function mayHaveEffect({ ok, status }: Response, problem: Partial<Problem> | undefined): boolean {
  return ok || (status >= 500 && problem?.code !== 'overloaded');
}

function errorOf({ status, headers }: Response, problem: Partial<Problem>, outcomeUnknown: boolean): GatewayError {
  const { code = 'unknown', detail = 'The response is not from the gateway' } = problem;
  return new GatewayError(`${status} ${code}: ${detail}`, {
    code,
    status,
    requestId: problem.request_id ?? headers.get('x-request-id') ?? undefined,
    errors: problem.errors ?? [],
    fields: problem.fields ?? [],
    retryAfterSeconds: retryAfterSeconds(headers),
    outcomeUnknown,
  });
}

/** Returns the seconds until the time in Retry-After, which is a number of seconds or a date (RFC 9110, 10.2.3). */
function retryAfterSeconds(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? '';
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
