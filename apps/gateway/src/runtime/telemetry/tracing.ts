import type { IncomingHttpHeaders } from 'node:http';
import { context, ROOT_CONTEXT, type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  ATTR_ERROR_TYPE,
  ATTR_RPC_METHOD,
  ATTR_RPC_STATUS_CODE,
  ATTR_RPC_SYSTEM_NAME,
  RPC_SYSTEM_NAME_VALUE_GRPC,
} from '@opentelemetry/semantic-conventions';
import type { TracesSampler } from '@order-gateway/runtime/traces-sampler';
import {
  describeHttp,
  type HttpFields,
  startServerSpan,
  startTracing as startServiceTracing,
} from '@order-gateway/runtime/tracing';
import type { CallLabels } from './metrics.ts';
import { version } from './version.ts';

export type Tracing = ReturnType<typeof startTracing>;

export type CallSpan = ReturnType<typeof callSpan>;

/** The attributes of a call's span, in addition to its labels. The route of an RPC is its path. */
interface CallFields extends HttpFields {
  /** The name of the gRPC status; `null` if the error has none, and absent where Fastify or Connect chose it. */
  readonly grpcStatus: string | null | undefined;
  readonly isError: boolean;
}

/** Starts tracing the gateway's calls. */
export function startTracing(sampler: TracesSampler) {
  const { close } = startServiceTracing(sampler, { name: 'order-gateway', version });
  return { startCall: (headers: IncomingHttpHeaders): CallSpan => callSpan(startServerSpan(headers)), close };
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
