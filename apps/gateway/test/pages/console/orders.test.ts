import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { describe, expect, test } from 'vitest';
import { signIn, useVisitors } from '../../helpers/console-visitor.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postPayment } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true, baseUrl: 'https://pay.example.com' });

const { visitor, clerk, otherVisitor } = useVisitors(gateway);

const newOrder = (overrides: Record<string, unknown> = {}) =>
  createOrder(gateway, `console-${Math.random()}`, overrides);

describe('the list', () => {
  test('shows the newest orders first, with filters and pages', async () => {
    const metadata = { batch: `${Math.random()}` };
    const orders = [];
    for (let count = 0; count < 27; count += 1) orders.push(await newOrder({ metadata }));
    const filter = `metadata_key=batch&metadata_value=${metadata.batch}`;
    const ordersIn = (text: string) =>
      text.match(/\/console\/orders\/(\d+)"/g)?.map((link) => /\d+/.exec(link)?.[0]) ?? [];
    const first = (await clerk.get(`/orders?${filter}`)).text;
    const [, next = ''] = /rel="next" href="\/console([^"]+)"/.exec(first) ?? [];
    const second = (await clerk.get(next.replaceAll('&amp;', '&'))).text;
    const newestFirst = orders.toReversed().map(({ service_order_id }) => `${service_order_id}`);
    expect([...ordersIn(first), ...ordersIn(second)]).toEqual(newestFirst);
    expect(second).not.toContain('rel="next"');
    await callJson(gateway, 'POST', `/order/${orders[5]?.order_id}/cancel`);
    const cancelled = (await clerk.get(`/orders?${filter}&status=CANCELLED`)).text;
    expect(ordersIn(cancelled)).toEqual([`${orders[5]?.service_order_id}`]);
    expect(ordersIn((await clerk.get(`/orders?${filter}&created_to=2020-01-01T00:00`)).text)).toEqual([]);
    expect(ordersIn((await clerk.get(`/orders?${filter}&created_from=2020-01-01T00:00`)).text)).toHaveLength(25);
  });

  test('shows what each payment is for, and the beginning of a long note', async () => {
    await newOrder({ order_note: `Invoice 7\n${'x'.repeat(100)}` });
    expect((await clerk.get('/orders')).text).toContain(`<td><bdi>Invoice 7 ${'x'.repeat(70)}…</bdi></td>`);
  });

  test('reads a time without an offset in UTC, and shows a time with an offset in the date picker', async () => {
    const order = await newOrder();
    const fromMs = Date.parse(order.created_at) - 60_000;
    for (const from of [new Date(fromMs).toISOString(), new Date(fromMs).toISOString().slice(0, 16)]) {
      const { text } = await clerk.get(`/orders?created_from=${encodeURIComponent(from)}`);
      expect(text).toContain(`/console/orders/${order.service_order_id}"`);
      expect(text).toContain(`value="${from.slice(0, 16)}" name="created_from"`);
    }
  });

  test('filters by currency', async () => {
    const [kroner, euro] = [await newOrder({ order_currency: 'DKK' }), await newOrder()];
    const { text } = await clerk.get('/orders?currency=DKK');
    expect(text).toContain(`/console/orders/${kroner.service_order_id}"`);
    expect(text).not.toContain(`/console/orders/${euro.service_order_id}"`);
    expect(text).toContain('<option value="DKK" selected>');
    expect((await clerk.get('/orders?currency=X')).text).toContain('id="currency-error"');
  });

  test('reports an invalid filter beside its field, and keeps the value that was typed', async () => {
    const { status, text } = await clerk.get('/orders?status=LOST&created_from=soon');
    expect(status).toBe(400);
    expect(text).toContain('id="status-error"');
    expect(text).toMatch(/value="soon" name="created_from"[^>]+aria-describedby="created_from-error"/);
  });
});

describe('the search', () => {
  test('redirects to the order that an order ID, token, link or payment ID identifies', async () => {
    const order = await newOrder();
    const payment_id = `pay-${Math.random()}`;
    await postPayment(gateway.checkout, order.order_token, { payment_id });
    const { order_id, service_order_id, order_token, payment_link } = order;
    const links = [payment_link, `${payment_link}).`, `${payment_link}?lang=de`, `${payment_link}/simulate?lang=de`];
    const texts = [order_id, service_order_id, order_token, ...links, ` ${payment_id}\n`];
    for (const text of texts) {
      const { status, headers } = await clerk.get(`/search?q=${encodeURIComponent(text)}`);
      expect([text, status, headers.get('location')]).toEqual([text, 303, `/console/orders/${service_order_id}`]);
    }
    expect((await clerk.get(`/orders/${service_order_id}`)).text).toContain(
      '<span class="status badge paid">Paid</span>',
    );
  });

  test('shows all orders that match, if there are several', async () => {
    const first = await newOrder();
    const second = await createOrder(gateway, `${first.service_order_id}`);
    const { status, text } = await clerk.get(`/search?q=${first.service_order_id}`);
    expect(status).toBe(200);
    for (const { service_order_id } of [first, second]) expect(text).toContain(`/console/orders/${service_order_id}"`);
  });

  test('finds no order by other fields, and no order of another merchant', async () => {
    const order = await newOrder();
    const { customer_email, order_note } = validOrderInput();
    for (const text of [customer_email, order_note, order.order_id.slice(1), '']) {
      const { status } = await clerk.get(`/search?q=${encodeURIComponent(text)}`);
      expect([text, status]).toEqual([text, text === '' ? 303 : 404]);
    }
    for (const text of [order.order_id, order.service_order_id, order.order_token, order.payment_link]) {
      expect((await otherVisitor.get(`/search?q=${encodeURIComponent(text)}`)).status).toBe(404);
    }
  });
});

test('a merchant cannot see or change the orders of another merchant', async () => {
  const order = await newOrder();
  const path = `/orders/${order.service_order_id}`;
  for (const response of [
    await otherVisitor.get(path),
    await otherVisitor.get(`${path}/cancel`),
    await otherVisitor.post(`${path}/cancel`),
    await otherVisitor.post(`${path}/simulate`, { outcome: 'pay' }),
  ]) {
    expect(response.status).toBe(404);
    expect(response.text).not.toContain(order.order_id);
  }
  expect((await otherVisitor.get('/orders')).text).not.toContain(order.order_id);
  expect((await otherVisitor.get('/orders.csv')).text).not.toContain(order.order_id);
  const [, cursor = ''] = /cursor=([^"&]+)"/.exec((await visitor.get('/orders')).text) ?? [];
  expect(cursor).not.toBe('');
  expect((await otherVisitor.get(`/orders?cursor=${cursor}`)).status).toBe(400);
  expect((await callJson(gateway, 'GET', `/order/${order.order_id}`)).body.order_status).toBe('UN_PAID');
});

test('no redirect leads to another site', async () => {
  for (const path of [
    '/search?q=https://evil.example.com/payment/x',
    '//evil.example.com',
    '/orders/..%2f..%2f@evil',
  ]) {
    const { headers } = await visitor.get(path);
    expect(headers.get('location') ?? '/console').toMatch(/^\/console/);
  }
});

test('calls of the console and the API count towards the same rate limit', async () => {
  const limited = await runGateway({ hasConsole: true, rateLimit: 1 });
  const startMs = performance.now();
  const person = await signIn(limited);
  const calls = Array.from({ length: 10 }, () => [person.get('/orders'), callJson(limited, 'GET', '/orders')]).flat();
  const responses = await Promise.all(calls);
  const accepted = responses.filter(({ status }) => status === 200).length;
  expect(responses.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
  // One call immediately, and one for each second that has passed.
  expect(accepted).toBeLessThanOrEqual(1 + (performance.now() - startMs) / 1_000);
});
