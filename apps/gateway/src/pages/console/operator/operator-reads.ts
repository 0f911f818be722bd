import type { DataPoint } from '@opentelemetry/sdk-metrics';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { listRefusedPayments } from '@order-gateway/postgres/orders/operators';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import type { Metrics } from '../../../runtime/telemetry/metrics.ts';

export interface OperatorReadsDeps {
  /** The URL of the database, with a role that can read the audit log, such as `order_gateway_reader`. */
  readonly databaseUrl: string;
  readonly metrics: Pick<Metrics, 'collect'>;
}

/** The data that the pages show. */
export type OperatorReads = ReturnType<typeof openOperatorReads>;

/** Opens the stores that the pages read. The database connections are opened when a page first needs them. */
export function openOperatorReads({ databaseUrl: url, metrics }: OperatorReadsDeps) {
  const accounts = openAccountAdmin({ url });
  const webhooks = openWebhookEndpoints({ url });
  return {
    accounts,
    webhooks,
    listRefusals: (limit: number) => listRefusedPayments(url, limit),
    listOwed: (limit: number) => listRefusedPayments(url, limit, true),
    /** Returns whether each worker, or this process if it has none, is ready, from the same metrics as a scrape. */
    async readHealth() {
      const all = (await metrics.collect()).flatMap((scope) => scope.metrics);
      const pointsOf = (name: string): DataPoint<unknown>[] =>
        all
          .filter(({ descriptor }) => descriptor.name === name)
          .flatMap(({ dataPoints }) => dataPoints as DataPoint<unknown>[]);
      const ended = pointsOf('order_gateway.worker.up').filter(({ value }) => value === 0);
      return [...pointsOf('order_gateway.ready'), ...ended].map(({ value, attributes }) => ({
        worker: attributes.worker,
        isReady: value === 1,
      }));
    },
    close: () => Promise.all([accounts.close(), webhooks.close()]),
  };
}
