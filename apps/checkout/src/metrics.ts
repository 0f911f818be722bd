import { createServer, type Server } from 'node:http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import type { AttemptState } from './store/schema.ts';
import type { Store } from './store/store.ts';

/** The counters of the checkout. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Starts the metrics. Each scrape reads the gauges from the database, so they are the same for all processes. */
export function createMetrics(store: Pick<Store, 'moneyOnItsWay'>) {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  });
  const meter = new MeterProvider({ readers: [exporter] }).getMeter('order-gateway');
  const states = meter.createCounter('order_gateway.checkout.attempts', {
    description: 'State changes of attempts to pay',
  });
  const differences = meter.createCounter('order_gateway.checkout.differences', {
    description: 'Payments on which the daily comparison found a difference',
  });
  differences.add(0);
  const oldest = meter.createObservableGauge('order_gateway.checkout.unfinished.seconds', {
    description: 'Age of the oldest payment that is neither recorded, released nor refunded; 0 if there is none',
  });
  const owed = meter.createObservableGauge('order_gateway.checkout.owed', {
    description: 'Payments that must be refunded',
  });
  const authorisation = meter.createObservableGauge('order_gateway.checkout.authorisation.seconds', {
    description:
      'Time until the first authorisation ends that was neither captured nor released; absent if there is none',
  });
  meter.addBatchObservableCallback(
    async (result) => {
      const money = await store.moneyOnItsWay().catch(() => undefined);
      if (money === undefined) return;
      result.observe(oldest, money.oldestSeconds);
      result.observe(owed, money.owed);
      if (money.authorisationSeconds !== null) result.observe(authorisation, money.authorisationSeconds);
    },
    [oldest, owed, authorisation],
  );
  return {
    countState: (provider: string, state: AttemptState) => states.add(1, { provider, state }),
    countDifference: () => differences.add(1),
    /** Creates the server for Prometheus, which must not be public. */
    createServer: (): Server =>
      createServer((request, response) => exporter.getMetricsRequestHandler(request, response)),
  };
}
