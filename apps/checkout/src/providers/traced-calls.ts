import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { traced } from '../tracing.ts';
import type { Fetch } from './provider.ts';

/** An identifier in a path, such as `pi_3Tb1` or `tr_5B8c`. */
const identifier = /(?<=\/)[a-z]+_\w*[A-Z\d]\w*/g;

/**
 * Returns a function that sends each request to a provider in a span, by OpenTelemetry's conventions for HTTP clients.
 * The span has no URL: without identifiers, calls of one kind have the same name.
 */
export function tracedCalls(send: Fetch): Fetch {
  return (url, init) => {
    const { hostname, pathname } = new URL(url);
    const { method = 'GET' } = init;
    const attributes = { 'http.request.method': method, 'server.address': hostname };
    const name = `${method} ${pathname.replace(identifier, '{id}')}`;
    return traced(name, { kind: SpanKind.CLIENT, attributes }, async (span) => {
      const response = await send(url, init);
      span.setAttribute('http.response.status_code', response.status);
      if (!response.ok) span.setStatus({ code: SpanStatusCode.ERROR });
      return response;
    });
  };
}
