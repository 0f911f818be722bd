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
import { redact, statementFailure } from '../connections/errors.ts';
import { type OnServers, openOnServers } from '../merchant-servers.ts';
import { orderOf } from '../orders/order-rows.ts';
import { queueLimits } from '../queue-limits.ts';
import { prepareDeliveries } from './delivery-statements.ts';

/** Time limit for storing a result. If it is not stored, the event is delivered again. */
const recordTimeoutMs = 5_000;

/** Time limit for finding the server of a merchant whose deliveries are claimed. */
const claimTimeoutMs = 1_000;

/** The identity of an endpoint. */
export interface EndpointKey {
  readonly merchantId: AccountId;
  readonly endpointId: string;
}

/** Returns the identity of an endpoint as one string. */
export function endpointKeyOf({ merchantId, endpointId }: EndpointKey): string {
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
  /** 1 for the first attempt. */
  readonly attempt: number;
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
  /** Only endpoints after this one; absent: all. */
  readonly after?: EndpointKey | undefined;
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

interface RecordedAttempt {
  readonly delivery: ClaimedDelivery;
  readonly result: AttemptResult;
}

/** The queue of webhook deliveries with its connection. */
export type WebhookDeliveries = ReturnType<typeof openWebhookDeliveries>;

type Statements = ReturnType<typeof prepareDeliveries>;

/**
 * Opens the queue. Any number of processes may work on it. Each server of merchants has its own connection for claims
 * and results, so that a lost or hanging server delays only the results of its own merchants.
 */
export function openWebhookDeliveries(options: DatabaseOptions) {
  const { isDistributed } = options;
  const client = openDeliveryClient(options);
  const servers = openOnServers(options, (ofServer) => openServerQueue(ofServer, client));
  return {
    /**
     * Claims due deliveries, endpoint by endpoint, in the order of the endpoints' merchants and ids. Returns none while
     * the database is unreachable. Rejects only because of a bug.
     */
    async claim(filter: ClaimFilter): Promise<readonly ClaimedDelivery[]> {
      try {
        const rows = await (isDistributed ? claimByMerchant(client, servers, filter) : claimOfAll(client, filter));
        if (rows.length === 0) return [];
        const merchantIds = arrayLiteral(rows, ({ merchantId }) => merchantId);
        const accounts = await client.run(({ modes }) => modes.execute({ merchantIds }));
        const modeOf = new Map(accounts.map(({ id, mode }) => [id, mode]));
        return rows.map(({ merchantId, endpointId, attempt, event, order, endpoint }) => ({
          merchantId: merchantId as AccountId,
          endpointId,
          mode: modeOf.get(merchantId) ?? 'live',
          attempt,
          event: { ...event, createdAtMs: event.createdAt.getTime(), order: orderOf(order) },
          endpoint: endpoint === null ? undefined : { url: endpoint.url, signingSecrets: secretsOf(endpoint) },
        }));
      } catch (error) {
        if (statementFailure(error) === undefined) throw redact(error);
        return [];
      }
    },
    /** Returns the state of all webhooks; `undefined` while the database is unreachable. */
    async readHealth(): Promise<WebhookHealth | undefined> {
      try {
        const [row] = await client.run(({ health }) => health.execute());
        return row;
      } catch (error) {
        if (statementFailure(error) === undefined) throw redact(error);
        return undefined;
      }
    },
    /** Stores a result, unless another process has claimed the delivery since. Rejects only because of a bug. */
    async record(delivery: ClaimedDelivery, result: AttemptResult): Promise<void> {
      const timeoutMs = recordTimeoutMs * (options.patience ?? 1);
      await servers.call(delivery.merchantId, timeoutMs, ({ queue }, timeoutMs) =>
        queue.add({ delivery, result }, timeoutMs),
      );
    },
    /** Lets running calls finish, then closes the connections. */
    async close() {
      await servers.close();
      await client.close();
    },
  };
}

type ServerQueue = ReturnType<typeof openServerQueue>;

function openDeliveryClient(options: DatabaseOptions): DatabaseClient<Statements> {
  return openClient(
    { ...options, applicationName: 'order-gateway webhooks', settings: plansEveryRun },
    prepareDeliveries,
  );
}

/** Opens the queue of the results of one server's merchants. One server shares the connection of the claims. */
function openServerQueue(options: DatabaseOptions, shared: DatabaseClient<Statements>) {
  const { isDistributed } = options;
  const client = isDistributed ? openDeliveryClient(options) : shared;
  const queue = createBatchQueue<DatabaseClient<Statements>, RecordedAttempt, { kind: 'recorded' }>({
    name: 'webhooks',
    server: options.server,
    meter: options.meter,
    clients: [client],
    ...queueLimits.deliveries,
    async run(client, attempts) {
      const merchantOf = ({ delivery }: RecordedAttempt) => (isDistributed ? delivery.merchantId : undefined);
      for (const [merchantId, group] of Map.groupBy(attempts, merchantOf)) {
        await client.run(({ record }) =>
          record[merchantId === undefined ? 'of_all' : 'of_merchant'].execute({
            merchantId,
            ...recordParameters(group),
          }),
        );
      }
      return attempts.map(() => ({ kind: 'recorded' }));
    },
  });
  return { client, queue, close: queue.close };
}

function claimOfAll(client: DatabaseClient<Statements>, filter: ClaimFilter) {
  return client.run(({ claim }) => claim.of_all.execute(claimParameters(filter)));
}

/**
 * Asks all servers which endpoints have due deliveries, then claims the deliveries of each merchant on its server. The
 * merchants share the limit equally, and the next claim takes what is left.
 */
async function claimByMerchant(
  client: DatabaseClient<Statements>,
  servers: OnServers<ServerQueue>,
  filter: ClaimFilter,
): Promise<Awaited<ReturnType<typeof claimOfAll>>> {
  const parameters = claimParameters(filter);
  // Endpoints with deliveries in flight may have no capacity left, so their number is added to the limit.
  const due = await client.run(({ findDue }) =>
    findDue.execute({ ...parameters, limit: filter.limit + filter.inFlight.size }),
  );
  const free = due.flatMap(({ merchantId, endpointId }) => {
    const endpoint = { merchantId: merchantId as AccountId, endpointId };
    return (filter.inFlight.get(endpointKeyOf(endpoint)) ?? 0) < filter.perEndpoint ? [endpoint] : [];
  });
  const merchantIds = [...new Set(free.map(({ merchantId }) => merchantId))].slice(0, filter.limit);
  const limit = Math.floor(filter.limit / Math.max(1, merchantIds.length));
  const claims = merchantIds.map((merchantId) =>
    servers.call(merchantId, claimTimeoutMs, ({ client }) =>
      client.run(({ claim }) => claim.of_merchant.execute({ ...parameters, merchantId, limit })),
    ),
  );
  // The deliveries of the other merchants are claimed, even if a claim fails.
  const settled = await Promise.allSettled(claims);
  return settled.flatMap((claim) => {
    if (claim.status === 'fulfilled') return Array.isArray(claim.value) ? claim.value : [];
    if (statementFailure(claim.reason) === undefined) throw claim.reason;
    return [];
  });
}

function claimParameters({ failing, perEndpoint, inFlight, after, limit }: ClaimFilter) {
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
