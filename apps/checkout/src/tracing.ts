import { context, ROOT_CONTEXT, type Span, type SpanOptions, SpanStatusCode, trace } from '@opentelemetry/api';
import { describeHttp, startServerSpan, tracer } from '@order-gateway/runtime/tracing';
import type { FastifyInstance } from 'fastify';

/** Traces the requests of customers and providers, in the traces of their callers. Health checks are not traced. */
export function traceRequests(app: FastifyInstance): void {
  app.addHook('preHandler', ({ method: httpMethod, headers, routeOptions }, reply, done) => {
    const { url: route } = routeOptions;
    if (route?.startsWith('/health/')) return done();
    const span = startServerSpan(headers);
    reply.raw.once('close', () => {
      const { name, attributes } = describeHttp({ httpMethod, route, httpStatus: reply.statusCode });
      span.updateName(name).setAttributes(attributes);
      if (reply.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    context.with(trace.setSpan(ROOT_CONTEXT, span), done);
  });
}

/**
 * Runs work in a span: in the trace of the request for which it is done, or in a separate one if it is done in the
 * background.
 */
export function traced<Result>(name: string, options: SpanOptions, work: (span: Span) => Promise<Result>) {
  return tracer.startActiveSpan(name, options, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Returns what a log line says about the trace that it belongs to. */
export function traceMembers(): { readonly trace_id?: string } {
  const traceId = trace.getActiveSpan()?.spanContext().traceId;
  return traceId === undefined ? {} : { trace_id: traceId };
}
