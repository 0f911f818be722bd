import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { afterEach, expect, test } from 'vitest';
import { listen } from '../../../tools/test-resources.ts';
import { endProcesses, startOnNewDatabase } from './gateway-process.ts';
import { postOrder } from './send-order.ts';

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links: readonly { readonly traceId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

afterEach(endProcesses);

/** A collector that takes OTLP in JSON. */
async function startCollector() {
  const spans: Span[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    for (const { scopeSpans } of body.resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    response.setHeader('content-type', 'application/json').end('{}');
  });
  return { spans, url: `http://127.0.0.1:${await listen(server)}` };
}

test('a call is a span of the trace that its client began, and its log line has the trace id', async () => {
  const collector = await startCollector();
  const gateway = await startOnNewDatabase({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_TRACES_SAMPLER_ARG: '0',
  });
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const parentSpanId = '00f067aa0ba902b7';
  const sampled = { traceparent: `00-${traceId}-${parentSpanId}-01` };
  const order = validOrderInput({ order_id: 'traced' });
  expect((await postOrder(gateway, order, sampled)).status).toBe(201);
  expect((await postOrder(gateway, validOrderInput({ order_id: 'untraced' }))).status).toBe(201);
  const calls = () => gateway.lines.map((line) => JSON.parse(line)).filter(({ trace_id: id }) => id === traceId);
  await expect.poll(calls).toMatchObject([{ operation: 'CreateOrder', code: 'created' }]);
  gateway.child.kill('SIGTERM');
  expect(await gateway.exited).toBe(0);
  const [call, ...others] = collector.spans.filter(({ name }) => name === 'CreateOrder');
  expect(call).toMatchObject({ traceId, parentSpanId });
  expect(others).toEqual([]);
  const [batch] = collector.spans.filter(({ name }) => name === 'batch orders');
  expect(batch).toMatchObject({ traceId, parentSpanId: call?.spanId, links: [{ traceId, spanId: call?.spanId }] });
  expect(call?.attributes).toContainEqual({ key: 'code', value: { stringValue: 'created' } });
});
