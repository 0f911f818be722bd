import {
  createNoopMeter,
  type Meter,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/** The state of a queue at one moment. A connection is in use while it has a batch in flight. */
interface QueueState {
  readonly waiting: number;
  readonly connections: number;
  readonly usedConnections: number;
}

/** Measures a database queue. Its name is the label `queue` of its metrics, or `pool_name` for its connections. */
export function queueTelemetry(queue: string, meter: Meter = createNoopMeter()) {
  const labels = { queue };
  const waiting = meter.createObservableGauge('order_gateway.queue.waiting', {
    description: 'Items that wait for a batch',
  });
  // The name in OpenTelemetry's conventions up to 1.25. The current one, db.client.connection.count, ends in a suffix
  // that Prometheus reserves for histograms.
  const usage = meter.createObservableGauge('db.client.connections.usage', {
    description: 'Connections of a queue to the database, by whether they have a batch in flight',
  });
  const sizes = meter.createHistogram('order_gateway.batch.size', { description: 'Items in a batch' });
  const durations = meter.createHistogram('order_gateway.batch.duration.seconds', {
    description: 'From sending a batch to the outcomes of its items',
  });
  const tracer = trace.getTracer('order-gateway');
  return {
    /** Exports the state at each scrape. */
    observe(read: () => QueueState): void {
      waiting.addCallback((result) => result.observe(read().waiting, labels));
      usage.addCallback((result) => {
        const { connections, usedConnections } = read();
        result.observe(usedConnections, { pool_name: queue, state: 'used' });
        result.observe(connections - usedConnections, { pool_name: queue, state: 'idle' });
      });
    },
    /** Returns the span of the call that adds an item; `undefined` if none is recorded. */
    spanOfCall(): SpanContext | undefined {
      const context = trace.getActiveSpan()?.spanContext();
      return context !== undefined && trace.isSpanContextValid(context) ? context : undefined;
    },
    /** Runs and measures a batch. Records it as a span with links to its calls, if any of them is recorded. */
    async runBatch<Result>(
      size: number,
      calls: readonly SpanContext[],
      run: () => Promise<Result>,
      hasFailed: (result: Result) => boolean,
    ): Promise<Result> {
      const [first] = calls;
      // The span joins the trace of its first call. In a separate trace that is only linked to the calls, it would be
      // hard to find.
      const span =
        first &&
        tracer.startSpan(
          `batch ${queue}`,
          {
            kind: SpanKind.CLIENT,
            links: calls.map((context) => ({ context })),
            attributes: { 'db.system.name': 'postgresql', 'db.operation.batch.size': size },
          },
          trace.setSpanContext(ROOT_CONTEXT, first),
        );
      const startedAtMs = performance.now();
      try {
        const result = await run();
        if (span !== undefined && hasFailed(result)) span.setStatus({ code: SpanStatusCode.ERROR });
        return result;
      } finally {
        sizes.record(size, labels);
        durations.record((performance.now() - startedAtMs) / 1_000, labels);
        span?.end();
      }
    },
  };
}
