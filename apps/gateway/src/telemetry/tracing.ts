import type { IncomingHttpHeaders } from 'node:http';
import {
  context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { CallLabels } from './metrics.ts';

export type Tracing = ReturnType<typeof startTracing>;

export type CallSpan = ReturnType<typeof callSpan>;

/**
 * Starts tracing. Spans go to the collector that OpenTelemetry's own variables name (`OTEL_EXPORTER_OTLP_ENDPOINT` and those
 * beside it). `sampledShare` of the calls without a sampled parent are recorded, 0 to 1.
 */
export function startTracing(sampledShare: number) {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'order-gateway' }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampledShare) }),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  // Global, as the queues of the database link their batches to the calls of the items.
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const propagator = new W3CTraceContextPropagator();
  const tracer = provider.getTracer('order-gateway');
  return {
    /** Begins the span of a call, as a child of the span that its `traceparent` names (W3C Trace Context). */
    startCall(headers: IncomingHttpHeaders): CallSpan {
      const parent = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
      return callSpan(tracer.startSpan('call', { kind: SpanKind.SERVER }, parent));
    },
    /** Sends what is not sent yet. */
    close: () => provider.shutdown(),
  };
}

function callSpan(span: Span) {
  const isRecorded = span.isRecording();
  return {
    traceId: span.spanContext().traceId,
    /** Runs a step of the call; spans that it begins belong to the call. */
    run<Value>(step: () => Promise<Value>): Promise<Value> {
      // A call that is not recorded does without the context, which costs more than the rest of the span.
      return isRecorded ? context.with(trace.setSpan(ROOT_CONTEXT, span), step) : step();
    },
    end({ operation, protocol, code }: CallLabels, isError: boolean): void {
      if (!isRecorded) return;
      span.updateName(operation).setAttributes({ protocol, code });
      if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}
