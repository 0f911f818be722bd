import { randomUUID } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { lookup as lookUp, Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AccountId } from '@order-gateway/domain/accounts';
import { formatTime } from '@order-gateway/domain/orders';
import { failed, success } from '@order-gateway/domain/result';
import { webhookSignature } from '@order-gateway/domain/webhooks';
import {
  type AllowedAddresses,
  isLoopbackAddress,
  isPublicAddress,
  urlProblem,
} from '@order-gateway/runtime/ip-address';
import { webhookLimits } from '../limits.ts';
import type { Ping } from '../operations/service.ts';

/** Builds the headers and body of a webhook request, signed with each secret (Standard Webhooks, "Webhook headers"). */
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

/**
 * The result of one attempt. The text is for the merchant, such as `HTTP 500` or `ECONNREFUSED`. It contains no part of
 * a response body.
 */
export interface SendResult {
  /** Absent: there was no response. */
  readonly status?: number;
  readonly text: string;
}

export type Sender = ReturnType<typeof createSender>;

export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface SenderOptions {
  readonly allowedAddresses: AllowedAddresses;
  readonly resolve?: Resolve;
  readonly timeoutMs?: number;
}

const notAllowed = 'address not allowed';

/**
 * Creates a sender. It checks the IP addresses of a host name while it opens the connection, not before, so that the
 * name can't resolve to other addresses in between (DNS rebinding). Connections stay open for a few seconds for the
 * next request to the same host. If such a connection turns out to be closed, the request is sent again on a new one.
 */
export function createSender({
  allowedAddresses,
  resolve = allowedAddresses === 'public' ? createResolve() : resolveBySystem,
  timeoutMs = webhookLimits.attemptTimeoutMs,
}: SenderOptions) {
  const isAllowed = ({ address }: LookupAddress) =>
    allowedAddresses === 'any' ||
    isPublicAddress(address) ||
    (allowedAddresses === 'loopback' && isLoopbackAddress(address));
  const resolveAllowed = async (hostname: string) => {
    const allowed = (await resolve(hostname)).filter(isAllowed);
    if (allowed.length === 0) throw Object.assign(new Error(notAllowed), { code: notAllowed });
    return allowed;
  };
  const lookup: LookupFunction = (hostname, _options, callback) => {
    resolveAllowed(hostname).then(
      (allowed) => callback(null, allowed),
      (error) => callback(error, []),
    );
  };
  const openAgents = (options: http.AgentOptions) => {
    // With `autoSelectFamily`, `lookup` must return all addresses.
    const all = { ...options, lookup, autoSelectFamily: true };
    return { 'http:': new http.Agent(all), 'https:': new https.Agent(all) };
  };
  const { idleConnectionMs, perEndpoint } = webhookLimits;
  const keepingAgents = openAgents({ keepAlive: true, timeout: idleConnectionMs, maxFreeSockets: perEndpoint });
  const freshAgents = openAgents({});
  let isClosed = false;

  return {
    /** Sends one POST. Resolves within the time limit and never rejects. Redirects are not followed. */
    async send(address: string, headers: Readonly<Record<string, string>>, body: string): Promise<SendResult> {
      const url = new URL(address);
      // Node.js skips the lookup if the host is an IP address, so such a host is checked here.
      if (urlProblem(url, allowedAddresses) !== undefined) return { text: notAllowed };
      const isHttps = url.protocol === 'https:';
      const signal = AbortSignal.timeout(timeoutMs);
      const post = (agents: typeof freshAgents) => {
        const request = (isHttps ? https : http).request(url, {
          method: 'POST',
          agent: agents[isHttps ? 'https:' : 'http:'],
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
          signal,
        });
        // Prevents an uncaught error: once the response has begun, nothing awaits the request's errors.
        request.on('error', () => {});
        request.end(body);
        return request;
      };
      try {
        const request = post(keepingAgents);
        const wasUnanswered = watchUnanswered(request);
        return await resultOf(request).catch((error) => {
          if (signal.aborted || isClosed || !wasUnanswered()) throw error;
          return resultOf(post(freshAgents));
        });
      } catch (error) {
        const { code = 'connection closed' } = error as NodeJS.ErrnoException;
        return { text: signal.aborted ? `no response within ${timeoutMs / 1_000} s` : code };
      }
    },
    /** Closes all connections. Requests in flight end without a response. */
    close(): void {
      isClosed = true;
      for (const agents of [keepingAgents, freshAgents]) {
        agents['http:'].destroy();
        agents['https:'].destroy();
      }
    },
  };
}

/**
 * Returns whether the request was sent on a connection that an earlier request had used, and no byte of a response has
 * arrived. If such a request fails, the server has usually closed the connection as idle at the same moment.
 */
function watchUnanswered(request: http.ClientRequest): () => boolean {
  let bytesBefore = 0;
  request.once('socket', (socket) => {
    bytesBefore = socket.bytesRead;
  });
  return () => request.reusedSocket && request.socket?.bytesRead === bytesBefore;
}

/** Returns the result of a request once its response has ended or been cut off. Rejects if there is no response. */
async function resultOf(request: http.ClientRequest): Promise<SendResult> {
  // After `101 Switching Protocols`, Node.js closes the connection, without a response and without an error.
  const [response]: http.IncomingMessage[] = await Promise.race([once(request, 'response'), once(request, 'close')]);
  if (response === undefined) throw new Error('closed without a response');
  const status = response.statusCode ?? 0;
  let bytes = 0;
  try {
    for await (const { length } of response) {
      bytes += length;
      if (bytes > webhookLimits.responseBytesMax) break;
    }
  } catch {
    // A response that is cut off still has its status.
  }
  return { status, text: `HTTP ${status}` };
}

/** Resolves a name as other programs on this machine do, including its hosts file. */
function resolveBySystem(hostname: string): Promise<LookupAddress[]> {
  return lookUp(hostname, { all: true });
}

/** How long to wait for IPv6 addresses once the IPv4 addresses are known (RFC 8305, 8: Resolution Delay). */
const resolutionDelayMs = 50;

/**
 * Resolves a name by DNS only. The system's lookup would occupy one of four threads, so slow name servers would delay
 * all other endpoints. Some name servers never respond to queries for IPv6. Waiting for three such servers takes
 * 17 s, longer than an attempt may take. A resolver reads the addresses of the name servers only once, when it is
 * created, so each lookup creates one, which takes 0.1 ms of CPU time.
 */
export function createResolve(
  openResolver: () => Readonly<Record<'resolve4' | 'resolve6', (hostname: string) => Promise<string[]>>> = () =>
    new Resolver({ timeout: 2_000, tries: 2 }),
): Resolve {
  return async (hostname) => {
    const resolver = openResolver();
    const [v4, v6] = [resolver.resolve4(hostname), resolver.resolve6(hostname)];
    const delayedV6 = v4.then(
      () => sleep(resolutionDelayMs, []),
      () => v6,
    );
    const [found4, found6] = await Promise.allSettled([v4, Promise.race([v6, delayedV6])]);
    if (found4.status === 'rejected' && found6.status === 'rejected') throw found4.reason;
    const found = (result: PromiseSettledResult<string[]>, family: number) =>
      result.status === 'rejected' ? [] : result.value.map((address) => ({ address, family }));
    return [...found(found4, 4), ...found(found6, 6)];
  };
}

/**
 * Creates the function that sends test messages. It limits the messages in flight, because each of them holds a call
 * until the endpoint responds.
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
      const nowMs = now();
      const event = { id: `evt_test_${randomUUID()}`, type: 'webhook.test', timestamp: formatTime(nowMs), data: {} };
      const { headers, body } = webhookRequest(event, signingSecrets, nowMs);
      return success(await sender.send(url, headers, body));
    } finally {
      inFlight.splice(inFlight.indexOf(merchantId), 1);
    }
  };
}
