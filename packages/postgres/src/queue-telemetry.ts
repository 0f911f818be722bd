import { createNoopMeter, type Link, type Meter, ROOT_CONTEXT, type SpanContext, trace } from '@opentelemetry/api';

/** What is measured of a queue of the database. */
export interface QueueTelemetry {
  /** Exports the number of items that wait. */
  observeWaiting(count: () => number): void;
  /** The span of the call that adds an item; `undefined` where none is recorded. */
  spanOfCall(): SpanContext | undefined;
  /** Runs a batch, measures it, and records it as a span with links to its calls, if any of them is recorded. */
  runBatch<Result>(size: number, calls: readonly SpanContext[], run: () => Promise<Result>): Promise<Result>;
}

/** Measures a queue. The name is the label `queue` of its metrics. */
export function queueTelemetry(queue: string, meter: Meter = createNoopMeter()): QueueTelemetry {
  const labels = { queue };
  const waiting = meter.createObservableGauge('gateway.queue.waiting', { description: 'Items that wait for a batch' });
  const sizes = meter.createHistogram('gateway.batch.size', { description: 'Items in a batch' });
  const durations = meter.createHistogram('gateway.batch.duration.seconds', {
    description: 'From sending a batch to the outcomes of its items',
  });
  const tracer = trace.getTracer('order-gateway');
  return {
    observeWaiting: (count) => waiting.addCallback((result) => result.observe(count(), labels)),
    spanOfCall() {
      const context = trace.getActiveSpan()?.spanContext();
      return context !== undefined && trace.isSpanContextValid(context) ? context : undefined;
    },
    async runBatch(size, calls, run) {
      const [first] = calls;
      // In the trace of its first call: a span that is only linked would be in none that anyone looks at.
      const span =
        first &&
        tracer.startSpan(`batch ${queue}`, { links: calls.map(linkTo) }, trace.setSpanContext(ROOT_CONTEXT, first));
      const startedAt = performance.now();
      try {
        return await run();
      } finally {
        sizes.record(size, labels);
        durations.record((performance.now() - startedAt) / 1_000, labels);
        span?.setAttribute('size', size).end();
      }
    },
  };
}

function linkTo(context: SpanContext): Link {
  return { context };
}
