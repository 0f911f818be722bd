import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { afterEach, expect, test } from 'vitest';
import manifest from '../../../../../package.json' with { type: 'json' };
import { startCollector, valuesOf } from '../../../../../tools/trace-collector.ts';
import { endProcesses, startOnNewDatabase, stopGracefully } from '../../helpers/gateway-process.ts';
import { grpcClient } from '../../helpers/grpc/rpc-clients.ts';
import { credentialHeaders, orderMessage, postOrder } from '../../helpers/send-order.ts';

/** SPAN_KIND_CLIENT and STATUS_CODE_ERROR of OTLP. */
const clientKind = 3;
const errorStatus = 2;

afterEach(endProcesses);

test("a call is a span in its client's trace, and its log line has the trace id", async ({ skip }) => {
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
  await stopGracefully(gateway.child, skip);
  const [call, ...others] = collector.spans.filter(({ name }) => name === 'POST /order');
  expect(call).toMatchObject({ traceId, parentSpanId });
  expect(others).toEqual([]);
  const [batch] = collector.spans.filter(({ name }) => name === 'batch orders');
  expect(batch).toMatchObject({
    kind: clientKind,
    status: {},
    traceId,
    parentSpanId: call?.spanId,
    links: [{ traceId, spanId: call?.spanId }],
  });
  expect(valuesOf(call?.attributes)).toMatchObject({
    code: 'created',
    operation: 'CreateOrder',
    'http.request.method': 'POST',
    'http.route': '/order',
    'http.response.status_code': 201,
  });
  expect(valuesOf(collector.spans[0]?.resource)).toMatchObject({
    'service.name': 'order-gateway',
    'service.version': manifest.version,
    'service.instance.id': expect.stringMatching(/./),
  });
});

test('OTEL_ variables name the service and select the sampler, and the spans of a failed call have an error status', async ({
  skip,
}) => {
  const collector = await startCollector();
  const gateway = await startOnNewDatabase({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: 'payments',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging,service.instance.id=one',
    OTEL_TRACES_SAMPLER: 'always_on',
    OTEL_TRACES_SAMPLER_ARG: '0',
  });
  await runQuery(gateway.databaseUrl, 'alter table orders drop column customer_phone');
  const headers = credentialHeaders(gateway.credentials);
  await expect(grpcClient(OrderService, gateway).createOrder(orderMessage('failing'), { headers })).rejects.toThrow();
  await stopGracefully(gateway.child, skip);
  expect(valuesOf(collector.spans[0]?.resource)).toMatchObject({
    'service.name': 'payments',
    'deployment.environment.name': 'staging',
    'service.instance.id': 'one',
  });
  const [call] = collector.spans.filter(({ name }) => name === 'gateway.v1.OrderService/CreateOrder');
  expect(call?.status.code).toBe(errorStatus);
  expect(valuesOf(call?.attributes)).toMatchObject({
    'rpc.system.name': 'grpc',
    'rpc.method': 'gateway.v1.OrderService/CreateOrder',
    'rpc.status_code': 'UNAVAILABLE',
    'error.type': 'unavailable',
  });
  const [batch] = collector.spans.filter(({ name }) => name === 'batch orders');
  expect([batch?.kind, batch?.status.code]).toEqual([clientKind, errorStatus]);
});
