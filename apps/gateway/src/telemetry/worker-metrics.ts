import { ValueType } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  type GaugeMetricData,
  type MetricData,
  type ScopeMetrics,
} from '@opentelemetry/sdk-metrics';

/** The metrics of the workers by their numbers, each with the label `worker`; absent: the worker did not send any. */
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
