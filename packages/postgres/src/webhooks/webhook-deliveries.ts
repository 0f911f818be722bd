import type { AccountId, MerchantMode } from '@order-gateway/domain/accounts';
import type { OrderEvent } from '@order-gateway/domain/events';
import { createBatchQueue } from '../batches/batch-queue.ts';
import {
  arrayLiteral,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
  plansEveryRun,
} from '../connections/client.ts';
import { unlessUnreachable } from '../connections/errors.ts';
import { openOnServers } from '../merchant-servers.ts';
import { orderOf } from '../orders/order-rows.ts';
import { queueLimits } from '../queue-limits.ts';
import { prepareDeliveries } from './delivery-statements.ts';

/** Time limit for storing a result. If it is not stored, the event is delivered again. */
const recordTimeoutMs = 5_000;

/** The identity of an endpoint. */
export interface EndpointKey {
  readonly merchantId: AccountId;
  readonly endpointId: string;
}

/** Returns the identity of an endpoint as one string. */
export function endpointKeyOf({ merchantId, endpointId }: DueEndpoint): string {
  return `${merchantId} ${endpointId}`;
}

/** Where and how an event is delivered. */
export interface DeliveryEndpoint {
  readonly url: string;
  /** Encrypted, the current one first. There are two for a day after a rotation. */
  readonly signingSecrets: readonly Uint8Array[];
}

/** A delivery that this process may attempt now. */
export interface ClaimedDelivery extends EndpointKey {
  readonly mode: MerchantMode;
  readonly event: OrderEvent;
  /** 1 for the first attempt, also after a redelivery. */
  readonly attempt: number;
  /** Whether an earlier attempt has a result. */
  readonly wasAttempted: boolean;
  /** Absent if the merchant has removed the endpoint, or it was disabled. */
  readonly endpoint: DeliveryEndpoint | undefined;
}

/** Which deliveries to claim. */
export interface ClaimFilter {
  /** Whether to claim only deliveries to failing, disabled or removed endpoints, or only those to working endpoints. */
  readonly failing: boolean;
  /** The maximum number of deliveries in flight per endpoint. */
  readonly perEndpoint: number;
  /**
   * The number of deliveries that each endpoint has in flight, by {@link endpointKeyOf}. They count towards
   * `perEndpoint`.
   */
  readonly inFlight: ReadonlyMap<string, number>;
  readonly limit: number;
}

/**
 * The result of an attempt. The text is for the merchant and contains nothing of a response except its status.
 * `not_sent`: the gateway could not make the attempt, so it is not counted, and shows nothing about the endpoint.
 */
export type AttemptResult = { readonly text: string } & (
  | { readonly kind: 'delivered' | 'given_up' | 'endpoint_gone' }
  | { readonly kind: 'retry' | 'not_sent'; readonly afterSeconds: number }
);

/** The state of the webhooks of all merchants. */
export interface WebhookHealth {
  /**
   * How long the oldest delivery to a working endpoint has been due, in seconds; 0 if none is due. A failing endpoint
   * gets one attempt at a time, so its deliveries may wait.
   */
  readonly overdueSeconds: number;
  /** The number of enabled endpoints that work. */
  readonly working: number;
  /** The number of enabled endpoints whose latest attempt failed. */
  readonly failing: number;
}

/** The deliveries of a claim. `isDone` is false if the next claim should follow at once, because more may be due. */
export interface Claim {
  readonly deliveries: readonly ClaimedDelivery[];
  readonly isDone: boolean;
}

/** An endpoint as the statements return it. */
interface DueEndpoint {
  readonly merchantId: number;
  readonly endpointId: string;
}

interface RecordedAttempt {
  readonly delivery: ClaimedDelivery;
  readonly result: AttemptResult;
}

/** The queue of webhook deliveries with its connection. */
export type WebhookDeliveries = ReturnType<typeof openWebhookDeliveries>;

type Statements = ReturnType<typeof prepareDeliveries>;

/**
 * Opens the queue. Any number of processes may work on it. Each server of merchants has its own connection for claims
 * and results, so that a lost or hanging server delays only the deliveries of its own merchants.
 */
export function openWebhookDeliveries(options: DatabaseOptions) {
  const servers = openOnServers(options, openServerQueue);
  const claimOf = () =>
    servers.onEach(({ claim }, filter: ClaimFilter, share) =>
      claim({ ...filter, limit: Math.max(1, Math.floor(filter.limit * share)) }),
    );
  // A late claim of one kind must not be returned as one of the other kind.
  const [claimWorking, claimFailing] = [claimOf(), claimOf()];
  const readHealth = servers.onEach(({ client }) => client.run(({ health }) => health()));
  return {
    /**
     * Claims due deliveries, endpoint by endpoint, in the order of the endpoints' merchants and ids. The next claim
     * begins after the last endpoint of a claim that reached its limit, so that every endpoint gets its turn. Returns
     * none while the database is unreachable. Rejects only because of a bug.
     */
    async claim(filter: ClaimFilter): Promise<Claim> {
      const claim = filter.failing ? claimFailing : claimWorking;
      const claims = (await unlessUnreachable(claim(filter))) ?? [];
      return {
        deliveries: claims.flatMap(({ deliveries }) => deliveries),
        isDone: claims.every(({ isDone }) => isDone),
      };
    },
    /**
     * Returns the state of all webhooks, without those whose server is unreachable; `undefined` while the database is
     * unreachable.
     */
    async readHealth(): Promise<WebhookHealth | undefined> {
      const parts = (await unlessUnreachable(readHealth(undefined)))?.flat() ?? [];
      if (parts.length === 0) return undefined;
      const sum = (count: (part: WebhookHealth) => number) => parts.reduce((total, part) => total + count(part), 0);
      return {
        overdueSeconds: Math.max(...parts.map(({ overdueSeconds }) => overdueSeconds)),
        working: sum(({ working }) => working),
        failing: sum(({ failing }) => failing),
      };
    },
    /** Stores a result, unless another process has claimed the delivery since. Rejects only because of a bug. */
    async record(delivery: ClaimedDelivery, result: AttemptResult): Promise<void> {
      const timeoutMs = recordTimeoutMs * (options.patience ?? 1);
      await servers.call(delivery.merchantId, timeoutMs, ({ queue }, timeoutMs) =>
        queue.add({ delivery, result }, timeoutMs),
      );
    },
    /** Lets running calls finish, then closes the connections. */
    close: servers.close,
  };
}

/** Opens the deliveries of one server's merchants. */
function openServerQueue(options: DatabaseOptions) {
  const { server } = options;
  const client = openClient({ ...options, applicationName: 'order-gateway webhooks', settings: plansEveryRun }, (db) =>
    prepareDeliveries(db, server),
  );
  const queue = createBatchQueue<DatabaseClient<Statements>, RecordedAttempt, { kind: 'recorded' }>({
    ...options,
    name: 'webhooks',
    clients: [client],
    ...queueLimits.deliveries,
    async run(client, attempts) {
      const merchantIds = attempts.map(({ delivery }) => delivery.merchantId);
      await client.run(({ record }) => record(recordParameters(attempts), merchantIds));
      return attempts.map(() => ({ kind: 'recorded' }));
    },
  });
  /** The endpoints after which the next claims begin, by whether they claim deliveries to failing endpoints. */
  const lastEndpoints = new Map<boolean, DueEndpoint>();
  return {
    client,
    async claim(filter: ClaimFilter): Promise<Claim> {
      const { failing, limit } = filter;
      const previous = lastEndpoints.get(failing);
      const parameters = claimParameters(filter, previous);
      const rows = await (server
        ? claimOfEndpoints(client, filter, parameters)
        : client.run(({ claim }) => claim(parameters)));
      lastEndpoints.delete(failing);
      const last = rows.length < limit ? undefined : rows.toSorted(byEndpoint).at(-1);
      if (last !== undefined) lastEndpoints.set(failing, last);
      // A claim that began in the middle did not reach the endpoints before that. The next one does.
      const isDone = last === undefined && previous === undefined;
      if (rows.length === 0) return { deliveries: [], isDone };
      const accounts = await client.run(({ findAccountsOf }) => findAccountsOf(rows));
      const deliveries = rows.map(({ merchantId, event, order, endpoint, ...claimed }) => ({
        ...claimed,
        merchantId: merchantId as AccountId,
        mode: accounts.get(merchantId)?.mode ?? 'live',
        event: { ...event, createdAtMs: event.createdAt.getTime(), order: orderOf(order) },
        // The columns of an absent endpoint are null.
        endpoint: endpoint?.url ? { url: endpoint.url, signingSecrets: secretsOf(endpoint) } : undefined,
      }));
      return { deliveries, isDone };
    },
    queue,
    close: queue.close,
  };
}

/**
 * Finds out which endpoints of a server have due deliveries, then claims their deliveries on the shards of their
 * merchants. The endpoints share the limit equally, and the next claim takes what is left.
 */
async function claimOfEndpoints(
  client: DatabaseClient<Statements>,
  { perEndpoint, inFlight, limit }: ClaimFilter,
  parameters: ReturnType<typeof claimParameters>,
) {
  // Endpoints with deliveries in flight may have no capacity left, so their number is added to the limit.
  const due = await client.run(({ findDue }) => findDue({ ...parameters, limit: limit + inFlight.size }));
  const endpoints = due
    .map((endpoint) => ({
      ...endpoint,
      capacity: endpoint.isDisabled ? limit : perEndpoint - (inFlight.get(endpointKeyOf(endpoint)) ?? 0),
    }))
    .filter(({ capacity }) => capacity > 0)
    .toSorted(byEndpoint)
    .slice(0, limit);
  if (endpoints.length === 0) return [];
  const share = Math.floor(limit / endpoints.length);
  const lists = {
    merchantIds: arrayLiteral(endpoints, ({ merchantId }) => merchantId),
    endpointIds: arrayLiteral(endpoints, ({ endpointId }) => endpointId),
    capacities: arrayLiteral(endpoints, ({ capacity }) => Math.min(capacity, share)),
  };
  const merchantIds = endpoints.map(({ merchantId }) => merchantId as AccountId);
  return client.run(({ claim }) => claim({ ...parameters, ...lists }, merchantIds));
}

/** Compares endpoints in the order in which their deliveries are claimed. */
function byEndpoint(a: DueEndpoint, b: DueEndpoint): number {
  return a.merchantId - b.merchantId || (a.endpointId < b.endpointId ? -1 : 1);
}

function claimParameters({ failing, perEndpoint, inFlight, limit }: ClaimFilter, after?: DueEndpoint) {
  return {
    failing,
    perEndpoint,
    limit,
    busy: JSON.stringify(Object.fromEntries(inFlight)),
    afterMerchant: after?.merchantId ?? 0,
    afterEndpoint: after?.endpointId ?? '',
  };
}

function secretsOf(endpoint: { readonly signingSecret: Uint8Array; readonly previousSecret: Uint8Array | null }) {
  return [endpoint.signingSecret, endpoint.previousSecret].filter((secret) => secret !== null);
}

function recordParameters(attempts: readonly RecordedAttempt[]) {
  return {
    merchantIds: arrayLiteral(attempts, ({ delivery }) => delivery.merchantId),
    endpointIds: arrayLiteral(attempts, ({ delivery }) => delivery.endpointId),
    eventIds: arrayLiteral(attempts, ({ delivery }) => delivery.event.eventId),
    attempts: arrayLiteral(attempts, ({ delivery }) => delivery.attempt),
    urls: arrayLiteral(attempts, ({ delivery }) => delivery.endpoint?.url ?? null),
    kinds: arrayLiteral(attempts, ({ result }) => result.kind),
    afterSeconds: arrayLiteral(attempts, ({ result }) => ('afterSeconds' in result ? result.afterSeconds : null)),
    texts: arrayLiteral(attempts, ({ result }) => result.text),
  };
}
