import { countedOrdersMax } from '@order-gateway/domain/orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { waitLimitMs } from '../../../../../tools/test-limits.ts';
import { signIn } from '../../helpers/console-visitor.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postPayment } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true });

/** Stores copies of an order. `values` is an SQL list of the columns that differ, as names and values. */
const copy = (orderId: string, count: number, values: string) =>
  runQuery(
    gateway.databaseUrl,
    `insert into orders select (jsonb_populate_record(orders, jsonb_build_object(
      'service_order_id', service_order_id + n, 'order_id', order_id || n, ${values}))).*
    from orders, generate_series(1, ${count}) as n where order_id = '${orderId}'`,
  );

test('the overview is the first page after signing in', async () => {
  const { get } = await signIn(gateway, { role: 'read' });
  const first = await get('');
  expect([first.status, first.headers.get('location')]).toEqual([303, '/console/overview']);
  const { status, text } = await get('/overview');
  expect(status).toBe(200);
  expect(text).toContain('No orders were created in the last <bdi>30</bdi> days.');
  expect(text).toContain('href="/console/overview" aria-current="page"');
});

describe('the overview of a shop with orders', () => {
  let text: string;
  let clerk: Awaited<ReturnType<typeof signIn>>;
  beforeAll(async () => {
    // These calls must create all orders on the same day, so they do not start in the last minute of a day.
    await vi.waitUntil(() => Date.now() % 86_400_000 < 86_340_000, waitLimitMs);
    const shop = await gateway.newMerchant('Shop');
    await createOrder(await gateway.newMerchant('Other Shop'), 'other', { order_currency: 'CHF' });
    await createOrder(shop, 'unpaid', { order_currency: 'JPY', order_amount: 500 });
    const paid = await createOrder(shop, 'paid', { order_amount: 1_200.5 });
    await postPayment(gateway.checkout, paid.order_token, { payment_id: 'p-1', order_amount: 1_200.5 });
    await postPayment(gateway.checkout, paid.order_token, { payment_id: 'p-2', order_amount: 1_200.5 });
    await createOrder(shop, 'cancelled');
    await callJson(shop, 'POST', '/order/cancelled/cancel');
    await createOrder(shop, 'late');
    const daysAgo = (days: number) => `now() - interval '${days} days'`;
    await copy('late', 2, `'created_at', ${daysAgo(3)}, 'order_expires_at', ${daysAgo(1)}`);
    await copy('late2', 1, `'created_at', ${daysAgo(31)}`);
    clerk = await signIn(shop, { role: 'read' });
    ({ text } = await clerk.get('/overview'));
  });

  test('links the number of refused payments to their list, which has no payment of another merchant', async () => {
    expect(text.match(/<a href="\/console\/refused-payments">1<\/a>/g)).toHaveLength(1);
    const list = await clerk.get('/refused-payments');
    const [row, ...furtherRows] = list.text.match(/<tr><td>.*?<\/tr>/gs) ?? [];
    expect([list.status, furtherRows]).toEqual([200, []]);
    for (const shown of [
      '€1,200.50',
      'the order was already paid',
      '<bdi>p-2</bdi>',
      '<bdi>paid</bdi>',
      '/console/orders/',
    ]) {
      expect(row).toContain(shown);
    }
    const other = await (await signIn(await gateway.newMerchant())).get('/refused-payments');
    expect(other.text).toContain('No payment was refused in the last 30 days.');
    expect(other.text).not.toContain('p-2');
  });

  /** Returns the texts in the section of a currency that match a pattern, without their tags. */
  const figuresIn = (currency: string, pattern: RegExp) => {
    const [section = ''] = new RegExp(`aria-label="${currency}".*?</section>`, 's').exec(text) ?? [];
    return section.match(pattern)?.map((match) => match.replaceAll(/<[^>]*>/g, ' ').trim());
  };

  test('shows the figures of each currency, starting with the currency that has the most orders', () => {
    expect(text.match(/\?currency=\w+/g)).toEqual(['?currency=EUR', '?currency=JPY']);
    expect(figuresIn('EUR', /<dd>(<a[^>]*>)?[^<]*/g)).toEqual(['5', '1', '€1,200.50', '2', '2', '1']);
    expect(figuresIn('JPY', /<dd>(<a[^>]*>)?[^<]*/g)).toEqual(['1', '0', '¥0', '1', '0', '0']);
  });

  test('shows the figures of each day in a table, newest first', () => {
    expect(figuresIn('EUR', /data-label="[^"]*">[^<]*/g)?.map((cell) => cell.split('>')[1])).toEqual([
      ...['3', '1', '€1,200.50', '2', '0', '1'],
      ...['2', '0', '€0.00', '0', '2', '0'],
    ]);
  });

  test('draws a bar for each status of a day, and a bar for its refused payments below the axis', () => {
    const [svg = ''] = /<svg.*?<\/svg>/s.exec(text) ?? [];
    const bars = svg.matchAll(/class="(\w+)" x="(\d+)" y="([\d.]+)" width="8" height="([\d.]+)"/g);
    const drawn = [...bars].map(([, series, x, y, height]) => [series, ...[x, y, height].map(Number)]);
    expect(drawn.toSorted()).toEqual([
      ['expired', 261, 25, 50],
      ['open', 291, 0, 50],
      ['paid', 291, 50, 25],
      ['refused', 291, 75, 25],
    ]);
    expect(svg).toContain('d="M0 75H300"');
    expect(text).not.toContain('style="');
  });
});

test('the overview states which orders it counts if there are too many to count', async () => {
  const shop = await gateway.newMerchant('Large Shop');
  await createOrder(shop, 'first');
  const person = await signIn(shop);
  const limit = 'This page counts the newest <bdi>10,000</bdi> orders';
  expect((await person.get('/overview')).text).not.toContain(limit);
  await copy('first', countedOrdersMax, `'order_token', md5(n::text)`);
  expect((await person.get('/overview')).text).toContain(limit);
});
