import { readdirSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type BatchObservableResult, type Meter, type ObservableCallback, ValueType } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  AggregationType,
  DataPointType,
  type GaugeMetricData,
  InstrumentType,
  MeterProvider,
  type MetricData,
  type ScopeMetrics,
  type ViewOptions,
} from '@opentelemetry/sdk-metrics';
import { type MerchantMode, merchantModes } from '@order-gateway/domain/accounts';
import { type RefusalCode, refusalCodes } from '@order-gateway/domain/orders';
import type { RefundHealth } from '@order-gateway/postgres/order-store';
import type { WebhookHealth } from '@order-gateway/postgres/webhooks';
import { settledWithin } from '@order-gateway/runtime/settled-within';
import { openFilesMax, readinessCheckTimeoutMs } from '../../limits.ts';
import type { Readiness } from '../start/readiness.ts';
import { commit, version } from './version.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** How often the delay of the event loop is sampled, in milliseconds. This is the default of Node.js's own monitor. */
const delayResolutionMs = 10;

const openFilesFolder = '/proc/self/fd';

/** The bucket boundaries of duration histograms, in seconds: from a single insert to the longest call. */
const durations: ViewOptions = {
  instrumentName: '*.seconds',
  instrumentType: InstrumentType.HISTOGRAM,
  aggregation: {
    type: AggregationType.EXPLICIT_BUCKET_HISTOGRAM,
    options: { boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] },
  },
};

/**
 * Starts the metrics, including those of the process itself. Names contain the unit, because the exporter adds none. A
 * scrape also shows the metrics that `collectMore` returns.
 */
export function createMetrics(collectMore = async (): Promise<ScopeMetrics[]> => []) {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
    metricProducers: [
      {
        collect: async () => ({
          resourceMetrics: { resource: emptyResource(), scopeMetrics: await collectMore() },
          errors: [],
        }),
      },
    ],
  });
  const meter = new MeterProvider({ readers: [exporter], views: [durations] }).getMeter('order-gateway');
  observeProcess(meter);
  return {
    /** Creates the instruments of each part of the gateway. */
    meter,
    /** Responds to a scrape with all metrics in Prometheus's text format. */
    scrape: (request: IncomingMessage, response: ServerResponse) =>
      exporter.getMetricsRequestHandler(request, response),
    /** Returns all metrics as data, for the process that responds to scrapes. */
    collect: async () => (await exporter.collect()).resourceMetrics.scopeMetrics,
  };
}

function observeProcess(meter: Meter): void {
  const addGauge = (name: string, description: string, observe: ObservableCallback) =>
    meter.createObservableGauge(name, { description }).addCallback(observe);
  recordEventLoopDelay(meter);
  // Prometheus's client libraries use the names that begin with `process.`, and dashboards and alerts expect them.
  const startedAt = Date.now() / 1_000 - process.uptime();
  addGauge('process.start_time.seconds', 'Start of the process since the Unix epoch', (result) =>
    result.observe(startedAt),
  );
  if (process.platform === 'linux') {
    addGauge('process.open_fds', 'Open file descriptors', (result) =>
      result.observe(readdirSync(openFilesFolder).length),
    );
  }
  addGauge('process.max_fds', 'File descriptors that the process may open', (result) => result.observe(openFilesMax));
  addGauge('order_gateway.memory.bytes', 'Memory of the process: resident, and heap in use', (result) => {
    const { rss, heapUsed } = process.memoryUsage();
    result.observe(rss, { kind: 'resident' });
    result.observe(heapUsed, { kind: 'heap' });
  });
  meter
    .createObservableCounter('order_gateway.cpu.seconds', { description: 'CPU time of the process' })
    .addCallback((result) => {
      const { user, system } = process.cpuUsage();
      result.observe((user + system) / 1e6);
    });
  addGauge('order_gateway.build.info', 'Always 1; the labels are the versions', (result) =>
    result.observe(1, { version, commit, node: process.versions.node }),
  );
}

/**
 * Records a histogram, because the percentiles of Node.js's own monitor cover the whole time since the start, or since
 * any reader reset it.
 */
function recordEventLoopDelay(meter: Meter): void {
  const delays = meter.createHistogram('order_gateway.event_loop.delay.seconds', {
    description: 'How late the event loop runs a timer',
  });
  let dueAt = performance.now() + delayResolutionMs;
  setInterval(() => {
    const now = performance.now();
    let delayMs = Math.max(0, now - dueAt);
    // A blocked event loop also delays the timers that would have been due in the meantime. Without them, a loop that
    // is blocked for most of the time would have few long delays among many short ones.
    do {
      delays.record(delayMs / 1_000);
      delayMs -= delayResolutionMs;
    } while (delayMs > 0);
    dueAt = now + delayResolutionMs;
  }, delayResolutionMs).unref();
}

/** The health of a gateway, which each scrape reads. */
interface Health extends Pick<Readiness, 'isReady' | 'servedRatio' | 'clockOffsetMs'> {
  /** The state of all webhooks; `undefined` if the database does not respond. */
  webhookHealth(): Promise<WebhookHealth | undefined>;
  /** How long refunds have been outstanding; `undefined` if the database does not respond. */
  refundHealth(): Promise<RefundHealth | undefined>;
  /** When the certificate of both ports expires; absent without TLS. */
  readonly certificateExpiry: (() => Date) | undefined;
}

/**
 * Adds gauges of the gateway's health. They are read at each scrape, because a gateway that is not ready gets no calls
 * that could update them.
 */
export function observeHealth(
  meter: Meter,
  { isReady, servedRatio, clockOffsetMs, webhookHealth, refundHealth, certificateExpiry }: Health,
): void {
  const addGauge = (name: string, description: string, read: () => Promise<number | undefined>) =>
    meter.createObservableGauge(name, { description }).addCallback(async (result) => {
      const value = await settledWithin(readinessCheckTimeoutMs, read());
      if (typeof value === 'number') result.observe(value);
    });
  addGauge('order_gateway.ready', '1 if orders can be stored now, else 0', async () => Number(await isReady()));
  addGauge('order_gateway.merchants.served.ratio', 'Share of the merchants whose orders can be stored', servedRatio);
  addGauge(
    'order_gateway.clock.offset.seconds',
    "How far the clock of the process is ahead of the database's; negative: behind",
    async () => {
      const offsetMs = await clockOffsetMs();
      return offsetMs && offsetMs / 1_000;
    },
  );
  const overdue = meter.createObservableGauge('order_gateway.webhook.overdue.seconds', {
    description: 'How long the oldest webhook to a working endpoint has been due',
  });
  const endpoints = meter.createObservableGauge('order_gateway.webhook.endpoints', {
    description: 'Enabled webhook endpoints by state; failing: the latest attempt failed',
  });
  const observeWebhooks = async (result: BatchObservableResult) => {
    const health = await settledWithin(readinessCheckTimeoutMs, webhookHealth());
    if (health === undefined || health === 'deadline_exceeded') return;
    result.observe(overdue, health.overdueSeconds);
    result.observe(endpoints, health.working, { state: 'working' });
    result.observe(endpoints, health.failing, { state: 'failing' });
  };
  meter.addBatchObservableCallback(observeWebhooks, [overdue, endpoints]);
  const owed = meter.createObservableGauge('order_gateway.payments.owed.seconds', {
    description: 'How long the oldest refused payment of a live order has been owed to a customer',
  });
  const pending = meter.createObservableGauge('order_gateway.refunds.pending.seconds', {
    description: 'How long the oldest refund of a live order has been pending',
  });
  const observeRefunds = async (result: BatchObservableResult) => {
    const health = await settledWithin(readinessCheckTimeoutMs, refundHealth());
    if (health === undefined || health === 'deadline_exceeded') return;
    result.observe(owed, health.owedSeconds);
    result.observe(pending, health.pendingSeconds);
  };
  meter.addBatchObservableCallback(observeRefunds, [owed, pending]);
  if (certificateExpiry !== undefined) {
    // x509-certificate-exporter uses this name, so one alert also covers the certificates of proxies.
    addGauge(
      'x509.cert_not_after',
      'End of the certificate of both ports in seconds since the Unix epoch',
      async () => certificateExpiry().getTime() / 1_000,
    );
  }
}

/** Counts a payment that was refused. */
export type CountRefusal = ReturnType<typeof refusalCounter>;

/**
 * Returns a function that counts a refused payment. Checkout systems must refund such payments, except for test orders.
 */
export function refusalCounter(meter: Meter) {
  const counter = meter.createCounter('order_gateway.payments.refused', {
    description: 'Payments that were reported and refused',
  });
  // Prometheus sees the first refused payment as an increase only if the counter existed before.
  for (const code of refusalCodes) for (const mode of merchantModes) counter.add(0, { code, mode });
  return (labels: { readonly code: RefusalCode; readonly mode: MerchantMode }) => counter.add(1, labels);
}

/** The labels of a call. Each is a name that the gateway defines, never a client's text. */
export type CallLabels = Readonly<Record<'protocol' | 'operation' | 'code', string>>;

/**
 * Returns the metrics of all workers, each with the label `worker`. `byNumber` has the metrics of each worker by its
 * number; `undefined` means that the worker did not send any.
 */
export function workerMetrics(byNumber: ReadonlyMap<number, readonly ScopeMetrics[] | undefined>): ScopeMetrics[] {
  const all = [...byNumber].flatMap(([number, collected = []]) =>
    collected.map(({ scope, metrics }) => ({ scope, metrics: metrics.map((metric) => labelled(metric, number)) })),
  );
  return [...all, { scope: { name: 'order-gateway' }, metrics: [workerUp(byNumber)] }];
}

function labelled(metric: MetricData, number: number): MetricData {
  const dataPoints = metric.dataPoints.map((point) => ({
    ...point,
    attributes: { ...point.attributes, worker: `${number}` },
  }));
  // TypeScript can't infer that the points still have the metric's type.
  return { ...metric, dataPoints } as MetricData;
}

function workerUp(byNumber: ReadonlyMap<number, unknown>): GaugeMetricData {
  const now: [number, number] = [Math.floor(Date.now() / 1_000), 0];
  return {
    descriptor: {
      name: 'order_gateway.worker.up',
      description: '1 if the worker sent its metrics, 0 if it ended or hangs',
      unit: '',
      valueType: ValueType.INT,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DataPointType.GAUGE,
    dataPoints: [...byNumber].map(([number, collected]) => ({
      startTime: now,
      endTime: now,
      attributes: { worker: `${number}` },
      value: collected === undefined ? 0 : 1,
    })),
  };
}
