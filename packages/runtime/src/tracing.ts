import type { IncomingHttpHeaders } from 'node:http';
import { context, propagation, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
} from '@opentelemetry/semantic-conventions';
import type { SamplerName, TracesSampler } from './traces-sampler.ts';

/** A process that is traced. */
export type Tracing = ReturnType<typeof startTracing>;

/** Since version 3, the SDK does not read `OTEL_TRACES_SAMPLER` itself. */
const samplers: Readonly<Record<SamplerName, (share: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (share) => new TraceIdRatioBasedSampler(share),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (share) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
};

/**
 * Starts tracing. Spans are sent to the collector given by OpenTelemetry's own variables (such as
 * `OTEL_EXPORTER_OTLP_ENDPOINT`). `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` override the service's own
 * attributes.
 */
export function startTracing(
  { name, share }: TracesSampler,
  service: { readonly name: string; readonly version: string },
) {
  const serviceAttributes = { [ATTR_SERVICE_NAME]: service.name, [ATTR_SERVICE_VERSION]: service.version };
  // If several detectors set the same attribute, the last one wins.
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(serviceAttributes)).merge(detectResources({ detectors })),
    sampler: samplers[name](share),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  // These are global, because the database's queues link each batch to the calls of its items, and the checkout's calls
  // of the gateway name the span that they belong to.
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  return {
    /** Sends the remaining spans. */
    close: () => provider.shutdown(),
  };
}

/** Begins spans, which do nothing before {@link startTracing}. */
export const tracer = trace.getTracer('order-gateway');

/** Begins the span of a request, as a child of the span that its `traceparent` names (W3C Trace Context). */
export function startServerSpan(headers: IncomingHttpHeaders): Span {
  return tracer.startSpan('call', { kind: SpanKind.SERVER }, propagation.extract(ROOT_CONTEXT, headers));
}

/** The attributes of an HTTP request's span. */
export interface HttpFields {
  /** The method and route; absent: unknown. */
  readonly httpMethod: string | undefined;
  readonly route: string | undefined;
  readonly httpStatus: number;
}

/**
 * Returns the name and attributes of a span by OpenTelemetry's conventions for HTTP servers, without the path, which
 * can contain the token of a payment link.
 */
export function describeHttp({ httpMethod = '_OTHER', route, httpStatus }: HttpFields) {
  return {
    name: route === undefined ? httpMethod : `${httpMethod} ${route}`,
    attributes: {
      [ATTR_HTTP_REQUEST_METHOD]: httpMethod,
      ...(route !== undefined && { [ATTR_HTTP_ROUTE]: route }),
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: httpStatus,
    },
  };
}
