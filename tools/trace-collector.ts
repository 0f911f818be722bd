import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen } from './test-resources.ts';

/** A span in the JSON form of OTLP, with the attributes of its service. */
interface CollectedSpan {
  readonly name: string;
  readonly kind: number;
  readonly status: { readonly code?: number };
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links: readonly { readonly traceId: string }[];
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

type Attributes = readonly {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}[];

/** Returns attributes as an object. */
export function valuesOf(attributes: Attributes = []): Readonly<Record<string, string | number | undefined>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
}

/** Starts a collector that accepts OTLP in JSON, and closes it when the test has finished. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const server = createServer(async (request, response) => {
    for (const { resource, scopeSpans } of JSON.parse(await text(request)).resourceSpans)
      for (const scope of scopeSpans)
        for (const span of scope.spans) spans.push({ ...span, resource: resource.attributes });
    response.setHeader('content-type', 'application/json').end('{}');
  });
  return { spans: spans as readonly CollectedSpan[], url: `http://127.0.0.1:${await listen(server)}` };
}
