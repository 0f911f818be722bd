import { setTimeout as sleep } from 'node:timers/promises';
import type { Meter } from '@opentelemetry/api';
import { orderAfter } from '@order-gateway/domain/events';
import {
  type AttemptResult,
  type ClaimedDelivery,
  endpointKeyOf,
  type WebhookDeliveries,
} from '@order-gateway/postgres/webhooks';
import type { Logger } from '@order-gateway/runtime/logger';
import { drainTimeoutMs, webhookLimits } from '../limits.ts';
import { eventResponse } from '../operations/events.ts';
import type { RecordDeps } from '../operations/orders.ts';
import type { SigningSecrets } from '../runtime/secrets/signing-secrets.ts';
import { type Sender, webhookRequest } from './send.ts';

const minute = 60;
const hour = 60 * minute;

/** The pauses after failed attempts, in seconds: about three days in all. */
const retryPauses = [5, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];

/**
 * The pause before an attempt that the gateway could not make, in seconds: once an operator has acted, it follows soon.
 */
const notSentPause = minute;

/** Returns the pause in seconds after a failed attempt; `undefined` after the last one. `attempt` counts from 1. */
export function retryPauseSeconds(attempt: number): number | undefined {
  return retryPauses[attempt - 1];
}

export interface WebhookDeliveryOptions extends RecordDeps {
  readonly deliveries: WebhookDeliveries;
  readonly sender: Sender;
  readonly secrets: SigningSecrets;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly meter: Meter;
  readonly retryPause?: typeof retryPauseSeconds;
}

export type WebhookDelivery = ReturnType<typeof startWebhookDelivery>;

interface AttemptInFlight {
  readonly delivery: ClaimedDelivery;
  /** Whether the endpoint's last attempt failed, or the endpoint was disabled or removed. */
  readonly isFailing: boolean;
  readonly startedAtMs: number;
}

/**
 * Delivers webhooks until `close` is called. Any number of processes may do so at the same time. An endpoint whose last
 * attempt failed gets one attempt at a time, and an endpoint with a slow attempt gets no further one until that attempt
 * ends. All such endpoints share a part of the attempts in flight, so that they don't delay healthy endpoints.
 */
export function startWebhookDelivery(options: WebhookDeliveryOptions) {
  const { deliveries, sender, logger } = options;
  const attemptsInFlight = new Map<AttemptInFlight, Promise<void>>();
  const { attempts, delays } = webhookMetrics(options.meter, () => attemptsInFlight.size);
  let isClosing = false;
  let isAborted = false;
  /** Aborting it ends the pause before the next claims. */
  let pause = new AbortController();

  /** Ends the wait for the next poll, for example because this process has stored an event. */
  const wake = () => pause.abort();

  const isSlow = ({ isFailing, startedAtMs }: AttemptInFlight) =>
    isFailing || performance.now() - startedAtMs > webhookLimits.slowAfterMs;

  /** Claims and starts deliveries. Returns whether more may be due. */
  const claimAndStart = async (kind: 'healthy' | 'failing'): Promise<boolean> => {
    const { attemptsMax, failingAttemptsMax, perEndpoint, perFailingEndpoint } = webhookLimits;
    const slow = [...attemptsInFlight.keys()].filter(isSlow);
    const inFlight = countByEndpoint([...attemptsInFlight.keys()], slow, perEndpoint);
    const isFailing = kind === 'failing';
    const capacity = isFailing ? failingAttemptsMax - slow.length : attemptsMax;
    const limit = Math.min(capacity, attemptsMax - attemptsInFlight.size);
    if (limit <= 0) return false;
    const claimed = await deliveries.claim({
      failing: isFailing,
      perEndpoint: isFailing ? perFailingEndpoint : perEndpoint,
      inFlight,
      limit,
    });
    for (const delivery of claimed.deliveries) start(delivery, isFailing);
    return !claimed.isDone;
  };

  const start = (delivery: ClaimedDelivery, isFailing: boolean) => {
    const attemptInFlight = { delivery, isFailing, startedAtMs: performance.now() };
    const attemptAndRecord = async () => {
      try {
        const { attempt: number, wasAttempted, event } = delivery;
        // A failing endpoint and a redelivery delay only their own events, which is no fault of the gateway.
        const isMeasured = number === 1 && !wasAttempted && !isFailing;
        if (isMeasured) delays.record(Math.max(0, options.now() - event.createdAtMs) / 1_000);
        const result = await attempt(options, delivery);
        // The outcome of an aborted attempt is unknown. Another process repeats it.
        if (isAborted) return;
        attempts.add(1, { result: result.kind });
        const duration_ms = Math.round(performance.now() - attemptInFlight.startedAtMs);
        const fields = { ...fieldsOf(delivery), result: result.text, duration_ms };
        logger[result.kind === 'not_sent' ? 'error' : 'info'](fields, 'webhook');
        await deliveries.record(delivery, result);
      } catch (error) {
        attempts.add(1, { result: 'not_sent' });
        logger.error({ err: error }, 'webhook delivery failed');
      } finally {
        attemptsInFlight.delete(attemptInFlight);
        // Claims again, because the last claim may have skipped due deliveries while this attempt held a slot.
        wake();
      }
    };
    attemptsInFlight.set(attemptInFlight, attemptAndRecord());
  };

  const runUntilClosed = async () => {
    while (!isClosing) {
      pause = new AbortController();
      const startedAtMs = performance.now();
      const mayHaveMore = [await claimOrLog('healthy'), await claimOrLog('failing')];
      await sleep(pauseAfter(performance.now() - startedAtMs));
      if (isClosing || mayHaveMore.includes(true)) continue;
      await sleep(webhookLimits.pollEveryMs, undefined, { signal: pause.signal }).catch(() => {});
    }
  };

  /** The kinds whose latest claim failed. Logs only changes, because claims follow each other. */
  const failed = new Set<'healthy' | 'failing'>();
  const claimOrLog = async (kind: 'healthy' | 'failing') => {
    try {
      const mayHaveMore = await claimAndStart(kind);
      if (failed.delete(kind) && failed.size === 0) logger.info('due webhooks can be read again');
      return mayHaveMore;
    } catch (error) {
      if (failed.size === 0) logger.error({ err: error }, 'due webhooks could not be read');
      failed.add(kind);
      return false;
    }
  };

  const running = runUntilClosed();
  return {
    wake,
    /**
     * Stops claiming, and gives the attempts in flight {@link drainTimeoutMs} to finish. Other processes repeat the
     * attempts that do not.
     */
    async close(): Promise<void> {
      isClosing = true;
      wake();
      await running;
      await Promise.race([Promise.all(attemptsInFlight.values()), sleep(drainTimeoutMs, undefined, { ref: false })]);
      isAborted = true;
      sender.close();
      await Promise.all(attemptsInFlight.values());
    },
  };
}

/** Returns the pause after a lookup that took this long, in milliseconds. */
function pauseAfter(lookupMs: number): number {
  const { pollPauseMs, pollPauseRatio, pollEveryMs } = webhookLimits;
  return Math.min(pollEveryMs, Math.max(pollPauseMs, pollPauseRatio * lookupMs));
}

/** Counts the attempts in flight of each endpoint. An endpoint with a slow attempt has the maximum. */
function countByEndpoint(
  attempts: readonly AttemptInFlight[],
  slow: readonly AttemptInFlight[],
  perEndpoint: number,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { delivery } of attempts) {
    const key = endpointKeyOf(delivery);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  for (const { delivery } of slow) counts.set(endpointKeyOf(delivery), perEndpoint);
  return counts;
}

/** Returns the fields of a delivery in the log. */
function fieldsOf({ merchantId, endpointId, event, attempt }: ClaimedDelivery) {
  return {
    merchant_id: merchantId,
    endpoint_id: endpointId,
    event_id: event.eventId,
    order_id: event.order.fields.order_id,
    service_order_id: event.order.serviceOrderId,
    order_status: orderAfter(event).orderStatus,
    attempt,
  };
}

/**
 * Creates the metrics of deliveries. All labels have few values, which the gateway defines. The log has the details of
 * each endpoint.
 */
function webhookMetrics(meter: Meter, inFlight: () => number) {
  const attempts = meter.createCounter('order_gateway.webhook.attempts', {
    description: 'Attempts that ended, by result; not_sent: the gateway could not make or record the attempt',
  });
  // Prometheus sees the first attempt as an increase only if the counter existed before.
  attempts.add(0, { result: 'not_sent' });
  const delays = meter.createHistogram('order_gateway.webhook.delay.seconds', {
    description: 'From an event to the first attempt to deliver it to a working endpoint',
  });
  meter
    .createObservableGauge('order_gateway.webhook.in_flight', { description: 'Attempts in flight' })
    .addCallback((result) => result.observe(inFlight()));
  return { attempts, delays };
}

async function attempt(
  { sender, secrets, now, retryPause = retryPauseSeconds, ...deps }: WebhookDeliveryOptions,
  { merchantId, mode, event, attempt, endpoint }: ClaimedDelivery,
): Promise<AttemptResult> {
  if (endpoint === undefined) return { kind: 'given_up', text: 'no endpoint' };
  const signingSecrets = endpoint.signingSecrets.flatMap((stored) => secrets.decrypt(merchantId, stored) ?? []);
  if (signingSecrets.length === 0) {
    const text = 'the signing secret was stored with another SECRETS_KEY';
    return { kind: 'not_sent', afterSeconds: notSentPause, text };
  }
  const { headers, body } = webhookRequest(eventResponse(event, mode, deps), signingSecrets, now());
  const { status, text } = await sender.send(endpoint.url, headers, body);
  if (status !== undefined && status >= 200 && status < 300) return { kind: 'delivered', text };
  if (status === 410) return { kind: 'endpoint_gone', text };
  const afterSeconds = retryPause(attempt);
  return afterSeconds === undefined ? { kind: 'given_up', text } : { kind: 'retry', afterSeconds, text };
}
