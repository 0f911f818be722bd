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
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  RPC_SYSTEM_NAME_VALUE_GRPC,
} from '@opentelemetry/semantic-conventions';
import type { CallLabels } from './metrics.ts';
import { version } from './version.ts';

export type Tracing = ReturnType<typeof startTracing>;

export type CallSpan = ReturnType<typeof callSpan>;

/** Since version 3, the SDK does not read `OTEL_TRACES_SAMPLER` itself. */
const samplers = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (share: number) => new TraceIdRatioBasedSampler(share),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (share: number) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
} as const satisfies Record<string, (share: number) => Sampler>;

/** Which calls are traced. */
export interface TracesSampler {
  readonly name: keyof typeof samplers;
  /** From 0 to 1; used only by the samplers with a ratio. */
  readonly share: number;
}

/** The attributes of a call's span, in addition to its labels. */
interface CallFields {
  /** The method and route of an HTTP request; the route of an RPC is its path. Absent: unknown. */
  readonly httpMethod: string | undefined;
  readonly route: string | undefined;
  readonly httpStatus: number;
  /** The name of the gRPC status; `null` if the error has none, and absent where Fastify or Connect chose it. */
  readonly grpcStatus: string | null | undefined;
  readonly isError: boolean;
}

/**
 * Starts tracing. Spans are sent to the collector given by OpenTelemetry's own variables (such as
 * `OTEL_EXPORTER_OTLP_ENDPOINT`). `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` override the gateway's own
 * attributes.
 */
export function startTracing({ name, share }: TracesSampler) {
  const gatewayAttributes = { [ATTR_SERVICE_NAME]: 'order-gateway', [ATTR_SERVICE_VERSION]: version };
  // If several detectors set the same attribute, the last one wins.
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(gatewayAttributes)).merge(detectResources({ detectors })),
    sampler: samplers[name](share),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  // The provider and context are global, because the database's queues link each batch to the calls of its items.
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
    /** Sends the remaining spans. */
    close: () => provider.shutdown(),
  };
}

function callSpan(span: Span) {
  const isRecorded = span.isRecording();
  return {
    traceId: span.spanContext().traceId,
    /** Runs a step of the call. Spans that begin in the step are children of the call's span. */
    run<Value>(step: () => Promise<Value>): Promise<Value> {
      // A call that is not recorded gets no context, because the context costs more than the rest of the span.
      return isRecorded ? context.with(trace.setSpan(ROOT_CONTEXT, span), step) : step();
    },
    end({ operation, protocol, code }: CallLabels, fields: CallFields): void {
      if (!isRecorded) return;
      const { name, attributes } = protocol === 'json' ? describeHttp(fields) : describeRpc(protocol, fields);
      span.updateName(name).setAttributes({ operation, protocol, code, ...attributes });
      if (fields.isError) span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute(ATTR_ERROR_TYPE, code);
      span.end();
    },
  };
}

/**
 * Returns the name and attributes of a span by OpenTelemetry's conventions for HTTP servers, without the path, which
 * can contain the token of a payment link.
 */
function describeHttp({ httpMethod = '_OTHER', route, httpStatus }: CallFields) {
  return {
    name: route === undefined ? httpMethod : `${httpMethod} ${route}`,
    attributes: {
      [ATTR_HTTP_REQUEST_METHOD]: httpMethod,
      ...(route !== undefined && { [ATTR_HTTP_ROUTE]: route }),
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: httpStatus,
    },
  };
}

/** Returns the name and attributes of a span by OpenTelemetry's conventions for RPC servers. */
function describeRpc(protocol: string, { route, grpcStatus }: CallFields) {
  const method = route?.slice(1) ?? '_OTHER';
  return {
    name: method,
    attributes: {
      [ATTR_RPC_SYSTEM_NAME]: protocol === 'connect' ? 'connectrpc' : RPC_SYSTEM_NAME_VALUE_GRPC,
      [ATTR_RPC_METHOD]: method,
      ...(typeof grpcStatus === 'string' && { [ATTR_RPC_STATUS_CODE]: grpcStatus }),
    },
  };
}
