import type { LookupAddress } from 'node:dns';
import { lookup as lookUp, Resolver } from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { webhookSignature } from '@gateway/domain/webhook-signature';
import { isPublicAddress, literalAddressOf } from '../ip-address.ts';
import { webhookLimits } from '../limits.ts';

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

/** The result of one attempt. The text is for the merchant, such as `HTTP 500` or `ECONNREFUSED`; it holds nothing of a body. */
interface SendResult {
  /** Absent: there was no response. */
  readonly status?: number;
  readonly text: string;
}

export type Sender = ReturnType<typeof createSender>;

export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface SenderOptions {
  /** Whether http and addresses that are not public are allowed: for development only. */
  readonly allowPrivate: boolean;
  readonly resolve?: Resolve;
  readonly timeoutMs?: number;
}

/** Ends a request for a reason of ours. */
class SendError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

const notAllowed = 'address not allowed';

/**
 * Creates a sender. The address is checked when a connection is opened to it, not before, so that a name can't change its address
 * in between (DNS rebinding). Connections stay open for a few seconds for the next request to the same host.
 */
export function createSender({
  allowPrivate,
  resolve = allowPrivate ? resolveBySystem : createResolve(),
  timeoutMs = webhookLimits.attemptTimeoutMs,
}: SenderOptions) {
  const isAllowed = (address: string) => allowPrivate || isPublicAddress(address);
  const allowedAddresses = async (hostname: string) => {
    const allowed = (await resolve(hostname)).filter(({ address }) => isAllowed(address));
    if (allowed.length === 0) throw new SendError(notAllowed);
    return allowed;
  };
  const lookup: LookupFunction = (hostname, _options, callback) => {
    allowedAddresses(hostname).then(
      (allowed) => callback(null, allowed),
      (error) => callback(error, []),
    );
  };
  const agentOptions = {
    keepAlive: true,
    timeout: webhookLimits.idleConnectionMs,
    maxFreeSockets: webhookLimits.perMerchant,
    lookup,
    // The lookup is asked for all addresses.
    autoSelectFamily: true,
  };
  const httpAgent = new http.Agent(agentOptions);
  const httpsAgent = new https.Agent(agentOptions);

  return {
    /** Sends one POST. Settles within the time limit; never rejects. Redirects are not followed. */
    send(address: string, headers: Readonly<Record<string, string>>, body: string): Promise<SendResult> {
      const url = new URL(address);
      const literal = literalAddressOf(url);
      const isHttps = url.protocol === 'https:';
      // Node.js does not look up an address.
      if ((literal !== undefined && !isAllowed(literal)) || !(isHttps || allowPrivate))
        return Promise.resolve({ text: notAllowed });
      const request = (isHttps ? https : http).request(url, {
        method: 'POST',
        agent: isHttps ? httpsAgent : httpAgent,
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      });
      request.end(body);
      return resultOf(request, timeoutMs);
    },
    /** Closes all connections. Requests that are in flight have no response then. */
    close(): void {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

/** The result of a request, once its response has ended, was cut off at its limit, or the time is up. */
function resultOf(request: http.ClientRequest, timeoutMs: number): Promise<SendResult> {
  const { promise, resolve } = Promise.withResolvers<SendResult>();
  let result: SendResult = { text: 'connection closed' };
  const timer = setTimeout(
    () => request.destroy(new SendError(`no response within ${timeoutMs / 1_000} s`)),
    timeoutMs,
  );
  request.on('response', (response) => {
    const status = response.statusCode ?? 0;
    result = { status, text: `HTTP ${status}` };
    let bytes = 0;
    response.on('data', ({ length }) => {
      bytes += length;
      if (bytes > webhookLimits.responseBytesMax) request.destroy();
    });
    // A response that breaks off has its status all the same.
    response.on('error', () => {});
  });
  request.on('error', (error: NodeJS.ErrnoException) => {
    if (result.status === undefined && error.code !== undefined) result = { text: error.code };
  });
  request.on('close', () => {
    clearTimeout(timer);
    resolve(result);
  });
  return promise;
}

/** As other programs on this machine resolve a name: with its hosts file. */
function resolveBySystem(hostname: string): Promise<LookupAddress[]> {
  return lookUp(hostname, { all: true });
}

/** By DNS alone: the system's lookup takes one of four threads, and slow name servers would delay all other endpoints. */
function createResolve(): Resolve {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  return async (hostname) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
    const found = (result: PromiseSettledResult<string[]>, family: number) =>
      result.status === 'rejected' ? [] : result.value.map((address) => ({ address, family }));
    return [...found(v4, 4), ...found(v6, 6)];
  };
}
