import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import manifest from '../../../../../package.json' with { type: 'json' };
import { grpcClient } from '../../helpers/grpc/rpc-clients.ts';
import { runGateway, scrape, useGateway } from '../../helpers/running-gateway.ts';
import {
  type Caller,
  callJson,
  createOrder,
  orderMessage,
  postJson,
  postOrder,
  postPayment,
} from '../../helpers/send-order.ts';

const gateway = useGateway();

test('counts calls by protocol, operation and code', async () => {
  await postOrder(gateway, validOrderInput({ order_id: 'counted' }));
  await postOrder(gateway, validOrderInput({ order_id: 'counted' }));
  await postOrder(gateway, '{}');
  await fetch(`${gateway.url}/payment/unknown`);
  await fetch(`${gateway.url}/nowhere/private-text`);
  await grpcClient(OrderService, gateway).createOrder(orderMessage('counted-grpc'), { headers: gateway.headers });
  for (const labels of [
    'protocol="json",operation="CreateOrder",code="created"',
    'protocol="json",operation="CreateOrder",code="replayed"',
    'protocol="json",operation="CreateOrder",code="invalid_order"',
    'protocol="json",operation="PaymentPage",code="not_found"',
    'protocol="json",operation="unknown",code="not_found"',
    'protocol="grpc",operation="CreateOrder",code="created"',
  ]) {
    await expect.poll(() => scrape(gateway)).toContain(`order_gateway_call_duration_seconds_count{${labels}} 1\n`);
  }
  // The buckets go down to the duration of a single insert.
  expect(await scrape(gateway)).toMatch(/order_gateway_call_duration_seconds_bucket\{.*le="0.0025"\} \d/);
});

test('exports metrics of readiness, overdue webhooks, database connections, background jobs and the process', async () => {
  const scraped = await scrape(gateway);
  const value = (series: string) => Number(scraped.match(new RegExp(`^${series} (\\S+)$`, 'm'))?.[1]);
  expect(value('order_gateway_ready')).toBe(1);
  expect(value('order_gateway_merchants_served_ratio')).toBe(1);
  expect(value('order_gateway_clock_offset_seconds')).toBe(0);
  expect(value('order_gateway_webhook_overdue_seconds')).toBe(0);
  expect(value('order_gateway_webhook_endpoints{state="working"}')).toBe(0);
  expect(value('order_gateway_webhook_endpoints{state="failing"}')).toBe(0);
  expect(value('order_gateway_payments_owed_seconds')).toBe(0);
  expect(value('order_gateway_refunds_pending_seconds')).toBe(0);
  expect(value('order_gateway_webhook_attempts_total{result="not_sent"}')).toBe(0);
  expect(value('db_client_connections_usage{pool_name="orders",state="idle"}')).toBeGreaterThan(0);
  expect(value('order_gateway_background_job_failures_total{name="expire"}')).toBe(0);
  expect(Math.abs(value('process_start_time_seconds') - performance.timeOrigin / 1_000)).toBeLessThan(1);
  expect(value('process_max_fds')).toBeGreaterThan(0);
  if (process.platform === 'linux') expect(value('process_open_fds')).toBeGreaterThan(10);
});

test('exports the ages of the oldest debt and of the oldest pending refund of live orders', async () => {
  const shop = await runGateway();
  const { checkout, accounts, databaseUrl } = shop;
  await accounts.setMakesRefunds(checkout.credentials.clientId, true);
  const payTwice = async (merchant: Caller, order_id: string) => {
    const { order_token } = await createOrder(merchant, order_id);
    for (const payment_id of [`${order_id} first`, `${order_id} second`])
      await postPayment(checkout, order_token, { payment_id });
    await callJson(merchant, 'POST', `/order/${order_id}/refunds`, { refund_id: 'r' });
    return order_token;
  };
  await payTwice(await shop.newMerchant('Test Shop', 'test'), 'of-test-shop');
  const ages = async () => {
    const scraped = await scrape(shop);
    return ['payments_owed', 'refunds_pending'].map((name) =>
      Math.floor(Number(scraped.match(new RegExp(`^order_gateway_${name}_seconds (\\S+)$`, 'm'))?.[1]) / 3_600),
    );
  };
  await expect.poll(ages).toEqual([0, 0]);
  const order_token = await payTwice(shop, 'live');
  for (const [table, column, hours] of [
    ['refused_payments', 'refused_at', 30],
    ['pending_refunds', 'created_at', 50],
  ])
    await runQuery(databaseUrl, `update ${table} set ${column} = ${column} - interval '${hours} hours'`);
  await expect.poll(ages).toEqual([30, 50]);
  const { order_amount: amount } = validOrderInput();
  const paid = { order_token, amount, status: 'SUCCEEDED' };
  for (const report of [
    { payment_id: 'live second', provider_refund_id: 're_2' },
    { payment_id: 'live first', provider_refund_id: 're_1', refund_id: 'r' },
  ])
    await postJson(checkout, '/gateway.v1.CheckoutService/RecordRefund', { ...paid, ...report });
  await expect.poll(ages).toEqual([0, 0]);
});

test('a scrape does not reset the event loop delays', async () => {
  const count = async () =>
    Number((await scrape(gateway)).match(/order_gateway_event_loop_delay_seconds_count (\d+)/)?.[1]);
  const countBefore = await count();
  await expect.poll(count).toBeGreaterThan(countBefore);
});

test('a blocked event loop counts as one delay for each timer that it delays', async () => {
  const longDelays = async () => {
    const scraped = await scrape(gateway);
    const count = (series: string) =>
      Number(scraped.match(new RegExp(`event_loop_delay_seconds_${series} (\\d+)`))?.[1]);
    return count('count') - count('bucket{le="0.25"}');
  };
  const before = await longDelays();
  const end = performance.now() + 400;
  while (performance.now() < end);
  await expect.poll(longDelays).toBeGreaterThan(before + 10);
});

test('no label contains text sent by a client', async () => {
  const text = 'private-text';
  await fetch(`${gateway.url}/${text}/order`, { headers: { 'x-client-id': text, 'x-request-id': text } });
  await fetch(`${gateway.grpcUrl}/${text}`).catch(() => {});
  await postOrder(gateway, validOrderInput({ order_id: text, customer_name: text }));
  expect(await scrape(gateway)).not.toContain(text);
});

test('the admin port, health checks, OpenAPI document and metrics report the version of the release', async () => {
  const { version } = manifest;
  const json = async (url: string) => (await fetch(url)).json();
  expect(await json(`http://127.0.0.1:${gateway.adminPort}/version`)).toEqual({
    version,
    commit: expect.stringMatching(/^[0-9a-f]{40}$|^unknown$/),
    schema: expect.stringMatching(/^\d{4}_\w+$/),
  });
  expect(await json(`${gateway.url}/health/live`)).toEqual({ status: 'ok', version });
  await expect
    .poll(() => json(`${gateway.url}/health/ready`))
    .toEqual({ status: 'ok', version, merchants_served_ratio: 1 });
  expect(await json(`${gateway.url}/openapi.json`)).toMatchObject({ info: { version } });
  expect(await scrape(gateway)).toContain(`\norder_gateway_build_info{version="${version}",commit="`);
});

test('the admin port serves nothing but /metrics and /version, and the HTTP port has neither', async () => {
  const url = `http://127.0.0.1:${gateway.adminPort}`;
  // Some scrapers send a query.
  for (const path of ['/metrics', '/metrics?x=1']) {
    const response = await fetch(url + path);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await response.text()).toContain('# TYPE');
  }
  for (const unknown of [url, `${url}/metrics/x`, `${gateway.url}/metrics`, `${gateway.url}/version`])
    expect((await fetch(unknown)).status, unknown).toBe(404);
});
