import { copyTestCluster, createServerFolder } from '@order-gateway/dev-postgres/testing';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { startTracing } from '@order-gateway/runtime/tracing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startCollector, valuesOf } from '../../../tools/trace-collector.ts';
import { createProviders } from '../src/providers/all.ts';
import type { Account } from '../src/providers/provider.ts';
import type { Store } from '../src/store/store.ts';
import { traced } from '../src/tracing.ts';
import { createStripeStandIn } from '../testing/stripe-stand-in.ts';
import { startProcess } from './helpers/gateway-process.ts';

// Needs processes: tracing is global to a process, and the checkout and the gateway are two.
test("a payment is in one trace in the logs and spans of the checkout and the gateway: its caller's, if there is one", async () => {
  const collector = await startCollector();
  const { dataDir, remove } = await createServerFolder();
  onTestFinished(remove);
  await copyTestCluster(dataDir);
  const gateway = await startProcess({ DATA_DIR: dataDir, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  onTestFinished(() => gateway.stop());
  const banner = await gateway.printed('README.md continues here');
  const [clientId = '', clientSecret = ''] = ['CLIENT_ID', 'CLIENT_SECRET'].map(
    (name) => new RegExp(`${name}=(\\S+)`).exec(banner)?.[1],
  );
  const checkoutUrl = gateway.lines.find(({ msg }) => msg === 'checkout ready')?.base_url;
  const created = await fetch(`${gateway.url}/order`, {
    method: 'POST',
    headers: { 'x-client-id': clientId, 'x-client-secret': clientSecret, 'content-type': 'application/json' },
    body: JSON.stringify(validOrderInput({ order_id: 'traced' })),
  });
  const { order_token } = Object(await created.json());

  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const callerSpanId = '00f067aa0ba902b7';
  const locationOf = async (path: string, init: RequestInit = {}) => {
    const headers = { 'sec-fetch-site': 'same-origin', traceparent: `00-${traceId}-${callerSpanId}-01` };
    const response = await fetch(new URL(path, checkoutUrl), { redirect: 'manual', headers, ...init });
    return response.headers.get('location') ?? '';
  };
  const form = (fields: Readonly<Record<string, string>>) => ({ method: 'POST', body: new URLSearchParams(fields) });
  const session = await locationOf(`/pay/${order_token}`, form({ method: 'demo.demo' }));
  const back = await locationOf(session, form({ outcome: 'succeed' }));
  expect(await locationOf(back)).toContain('order_status=PAID');

  /** Returns the trace ids of the gateway's lines of a call, or of the checkout's lines of a state. */
  const tracesOf = (members: { readonly operation: string } | { readonly state: string }) =>
    gateway.lines
      .filter((line) => Object.entries(members).every(([name, value]) => line[name] === value))
      .map(({ trace_id }) => trace_id);
  await expect.poll(() => tracesOf({ operation: 'ResolvePaymentLink' })).toContain(traceId);
  // The sweep may be faster than the customer's request. Its lines are then in a separate trace.
  await expect.poll(() => tracesOf({ state: 'RECORDED' })).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
  const [recorded] = tracesOf({ state: 'RECORDED' });
  await expect.poll(() => tracesOf({ operation: 'RecordPayment' })).toContain(recorded);

  await gateway.stop();
  const spanOf = (service: string, spanName: string, id: string | undefined) =>
    collector.spans.find(
      (span) => span.name === spanName && span.traceId === id && valuesOf(span.resource)['service.name'] === service,
    );
  const request = spanOf('order-gateway-checkout', 'POST /pay/:orderToken', traceId);
  expect(request?.parentSpanId).toBe(callerSpanId);
  const record = spanOf('order-gateway', 'gateway.v1.CheckoutService/RecordPayment', recorded);
  expect(collector.spans.find(({ spanId }) => spanId === record?.parentSpanId)).toMatchObject({
    name: 'attempt',
    traceId: recorded,
  });
});

test('a call to a provider is a span, without the key, identifiers and data of the customer', async () => {
  const collector = await startCollector();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
  onTestFinished(() => void vi.unstubAllEnvs());
  const tracing = startTracing({ name: 'always_on', share: 1 }, { name: 'order-gateway-checkout', version: '1.0.0' });
  const stripe = createStripeStandIn();
  const providers = createProviders({} as Store, {
    baseUrl: () => 'https://pay.example',
    send: (url, init) =>
      url.includes('refused') ? Promise.reject(new TypeError('fetch failed')) : stripe.send(url, init),
  });
  const provider = providers.get('stripe');
  const account: Pick<Account, 'secrets'> = { secrets: stripe.secrets };
  const call = (paymentId: string) =>
    provider?.capture.send(account as Account, { paymentId }, 'key_1').catch(({ message }) => message);
  await traced('attempt', {}, async () => {
    expect(await call('pi_3TunKNown')).toBe('refused: resource_missing');
    expect(await call('pi_3Trefused')).toMatch('unanswered');
  });
  await tracing.close();

  const attempt = collector.spans.find(({ name }) => name === 'attempt');
  const calls = collector.spans.filter(({ kind }) => kind === 3);
  const attributes = { 'http.request.method': 'POST', 'server.address': 'api.stripe.com' };
  expect(calls.map((span) => ({ ...span, attributes: valuesOf(span.attributes) }))).toEqual(
    [{ ...attributes, 'http.response.status_code': 404 }, attributes].map((shown) =>
      expect.objectContaining({
        name: 'POST /v1/payment_intents/{id}/capture',
        parentSpanId: attempt?.spanId,
        attributes: shown,
        status: { code: 2 },
      }),
    ),
  );
  expect(JSON.stringify(calls)).not.toMatch(/rk_test|pi_3T/);
});
