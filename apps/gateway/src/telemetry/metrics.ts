import type { IncomingMessage, ServerResponse } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meter, ObservableCallback } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { emptyResource } from '@opentelemetry/resources';
import {
  AggregationType,
  InstrumentType,
  MeterProvider,
  type ScopeMetrics,
  type ViewOptions,
} from '@opentelemetry/sdk-metrics';
import gatewayPackage from '../../package.json' with { type: 'json' };

export type Metrics = ReturnType<typeof createMetrics>;

/** How often the delay of the event loop is sampled, in milliseconds: Node.js's default. */
const delayResolutionMs = 10;

/** Histograms of durations in seconds have the bounds that fit calls: from a lone insert to the longest call. */
const durations: ViewOptions = {
  instrumentName: '*.seconds',
  instrumentType: InstrumentType.HISTOGRAM,
  aggregation: {
    type: AggregationType.EXPLICIT_BUCKET_HISTOGRAM,
    options: { boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] },
  },
};

/**
 * Starts the metrics of this process, with those of the process itself. Names contain the unit: the exporter adds none. A scrape
 * also shows what `collectMore` returns.
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
    /** Makes the instruments of each part of the gateway. */
    meter,
    /** Answers a scrape with all metrics in Prometheus's text format. */
    scrape: (request: IncomingMessage, response: ServerResponse) =>
      exporter.getMetricsRequestHandler(request, response),
    /** Returns all metrics as data, for the process that answers scrapes. */
    collect: async () => (await exporter.collect()).resourceMetrics.scopeMetrics,
  };
}

function observeProcess(meter: Meter): void {
  const delay = monitorEventLoopDelay({ resolution: delayResolutionMs });
  delay.enable();
  const addGauge = (name: string, description: string, observe: ObservableCallback) =>
    meter.createObservableGauge(name, { description }).addCallback(observe);
  const ofDelay = 'Delay of the event loop since the last scrape; quantile 1 is the longest';
  addGauge('gateway.event_loop.delay.seconds', ofDelay, (result) => {
    for (const quantile of [0.5, 0.99, 1]) {
      // The histogram is in nanoseconds and includes the sampling interval.
      const seconds = delay.percentile(quantile * 100) / 1e9 - delayResolutionMs / 1_000;
      result.observe(Math.max(0, seconds), { quantile });
    }
    delay.reset();
  });
  addGauge('gateway.memory.bytes', 'Memory of the process: resident, and heap in use', (result) => {
    const { rss, heapUsed } = process.memoryUsage();
    result.observe(rss, { kind: 'resident' });
    result.observe(heapUsed, { kind: 'heap' });
  });
  meter
    .createObservableCounter('gateway.cpu.seconds', { description: 'Processor time of the process' })
    .addCallback((result) => {
      const { user, system } = process.cpuUsage();
      result.observe((user + system) / 1e6);
    });
  addGauge('gateway.build.info', 'Always 1; the labels are the versions', (result) =>
    result.observe(1, { version: gatewayPackage.version, node: process.versions.node }),
  );
}

/** Every label is a name of ours: never a client's text. */
export type CallLabels = Readonly<Record<'protocol' | 'operation' | 'code', string>>;

/** Counts a call that ended. */
export type RecordCall = ReturnType<typeof callRecorder>;

/** The metrics of the calls, whatever carries them. */
export function callRecorder(meter: Meter) {
  const durations = meter.createHistogram('gateway.call.duration.seconds', {
    description: 'From the headers of a call to the end of its response',
  });
  return (labels: CallLabels, durationMs: number) => durations.record(durationMs / 1_000, labels);
}
