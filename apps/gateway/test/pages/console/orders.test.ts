import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { beforeAll, describe, expect, test } from 'vitest';
import type { OrderRecord } from '../../../src/operations/orders.ts';
import { auditLogOf, signIn } from '../../helpers/console-visitor.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postJson, postPayment } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true, baseUrl: 'https://pay.example.com' });

let visitor: Awaited<ReturnType<typeof signIn>>;
let clerk: typeof visitor;
let otherVisitor: typeof visitor;
beforeAll(async () => {
  visitor = await signIn(gateway);
  clerk = await signIn(gateway, { name: 'Bob', role: 'read' });
  otherVisitor = await signIn(await gateway.newMerchant());
});

const newOrder = (overrides: Record<string, unknown> = {}) =>
  createOrder(gateway, `console-${Math.random()}`, overrides);

const findOrder = async (orderId: string): Promise<OrderRecord> =>
  (await callJson(gateway, 'GET', `/order/${encodeURIComponent(orderId)}`)).body;

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
    const texts = [order_id, service_order_id, order_token, payment_link, `${payment_link}).`, ` ${payment_id}\n`];
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

describe('an order', () => {
  test('shows its timeline with refused payments, but no customer data', async () => {
    const order = await newOrder({ metadata: { cart: 'C-7' } });
    const path = `/orders/${order.service_order_id}`;
    const unpaidPage = (await clerk.get(path)).text;
    expect(unpaidPage).toContain(order.payment_link);
    expect(unpaidPage).toContain('<svg');
    const [, mail = ''] = /href="(mailto:[^"]+)"/.exec(unpaidPage) ?? [];
    const { searchParams } = new URL(mail.replaceAll('&amp;', '&'));
    expect(searchParams.get('subject')).toBe('Payment link from Test Shop');
    expect(searchParams.get('body')).toBe(`Please pay €1,249.50 EUR to Test Shop here: ${order.payment_link}`);
    await postPayment(gateway.checkout, order.order_token, { payment_id: 'wrong', order_amount: 1 });
    await postPayment(gateway.checkout, order.order_token, { payment_id: 'right' });
    const { text } = await clerk.get(path);
    const entries = [...text.matchAll(/<li><time[^>]+>[^<]+<\/time>(.*?)<\/li>/gs)].map(([, entry = '']) =>
      entry.replaceAll(/<[^>]+>/g, ''),
    );
    expect(entries).toHaveLength(3);
    expect(entries).toEqual(
      expect.arrayContaining([
        'Order created',
        expect.stringMatching(/^Payment wrong of .* refused: payment_mismatch\./),
        'Paid, payment ID right',
      ]),
    );
    expect(text).toContain('C-7');
    const { customer_name, customer_email, customer_phone, customer_address_line1 } = validOrderInput();
    for (const value of [customer_name, customer_email, customer_phone, customer_address_line1]) {
      expect(text).not.toContain(value);
    }
  });

  test('is cancelled after a confirmation, and the audit log names the person', async () => {
    const order = await newOrder();
    const path = `/orders/${order.service_order_id}`;
    const confirmation = await visitor.get(`${path}/cancel`);
    expect(confirmation.text).toContain(`Cancel order ${order.order_id}?`);
    expect((await findOrder(order.order_id)).order_status).toBe('UN_PAID');
    const cancelled = await visitor.post(`${path}/cancel`);
    expect([cancelled.status, cancelled.headers.get('location')]).toEqual([303, `/console${path}`]);
    expect((await findOrder(order.order_id)).order_status).toBe('CANCELLED');
    expect(await auditLogOf(gateway, 'order.cancel')).toContainEqual({
      actor: 'console:Ada',
      details: { order_id: order.order_id, role: 'manage' },
    });
  });

  test('is marked as paid after a confirmation, and the audit log names the person', async () => {
    const { order_id, service_order_id, created_at } = await newOrder();
    const path = `/orders/${service_order_id}`;
    expect((await visitor.get(path)).text).toContain('/payments');
    expect((await visitor.get(`${path}/payments`)).text).toContain(`Mark order ${order_id} as paid?`);
    const payment = { payment_id: `receipt-${order_id}`, paid_on: created_at.slice(0, 10), payment_note: '' };
    expect((await visitor.post(`${path}/payments`, { ...payment, paid_on: '' })).status).toBe(400);
    expect((await clerk.post(`${path}/payments`, payment)).status).toBe(403);
    expect((await findOrder(order_id)).order_status).toBe('UN_PAID');
    expect((await visitor.post(`${path}/payments`, payment)).status).toBe(303);
    const { payment_id } = payment;
    expect(await findOrder(order_id)).toMatchObject({ order_status: 'PAID', payment_id, payment_method: 'manual' });
    expect(await auditLogOf(gateway, 'order.record_payment')).toContainEqual({
      actor: 'console:Ada',
      details: { order_id, role: 'manage' },
    });
    expect((await visitor.get(path)).text).not.toContain(`${path}/payments`);
  });

  test("shows the customer's data and the note of a manual payment to a manager who asks, and the audit log says so", async () => {
    const { order_id, service_order_id, created_at } = await newOrder({ customer_address_line2: '' });
    const path = `/orders/${service_order_id}`;
    const payment = {
      payment_id: `cash-${order_id}`,
      paid_on: created_at.slice(0, 10),
      payment_note: 'At the <counter>',
    };
    expect((await visitor.post(`${path}/payments`, payment)).status).toBe(303);
    const { customer_name, customer_email, customer_phone, customer_address_line1 } = validOrderInput();
    const shown = [customer_name, customer_email, customer_phone, customer_address_line1, 'At the &lt;counter&gt;'];
    const before = (await visitor.get(path)).text;
    expect(before).toContain(`Marked as paid, payment ID <bdi>cash-${order_id}</bdi>`);
    expect(shown.filter((value) => before.includes(value))).toEqual([]);
    expect((await clerk.get(path)).text).not.toContain('personal-data');
    expect((await clerk.post(`${path}/personal-data`)).status).toBe(403);
    expect((await otherVisitor.post(`${path}/personal-data`)).status).toBe(404);
    expect(await auditLogOf(gateway, 'order.show_personal_data')).toEqual([]);
    const { status, text } = await visitor.post(`${path}/personal-data`);
    expect([status, shown.filter((value) => !text.includes(value))]).toEqual([200, []]);
    expect(text).not.toContain('Address, line 2');
    expect(await auditLogOf(gateway, 'order.show_personal_data')).toEqual([
      { actor: 'console:Ada', details: { order_id, role: 'manage' } },
    ]);
    await runQuery(gateway.databaseUrl, `update orders set erased_digest = '\\x00' where order_id = '${order_id}'`);
    const erased = (await visitor.post(`${path}/personal-data`)).text;
    expect(erased).toContain('has been erased');
    expect(shown.filter((value) => erased.includes(value))).toEqual([]);
  });

  test('is not cancelled if it has been paid in the meantime, and the page says so', async () => {
    const order = await newOrder();
    await postPayment(gateway.checkout, order.order_token);
    const { status, text } = await visitor.post(`/orders/${order.service_order_id}/cancel`);
    expect([status, text]).toEqual([409, expect.stringContaining('role="alert">')]);
    expect((await findOrder(order.order_id)).order_status).toBe('PAID');
  });

  test('shows no actions to a person with the role `read`, and rejects them with 403', async () => {
    const order = await newOrder();
    const path = `/orders/${order.service_order_id}`;
    expect((await clerk.get(path)).text).not.toContain('/cancel');
    expect((await visitor.get(path)).text).toContain('/cancel');
    for (const { status } of [await clerk.get(`${path}/cancel`), await clerk.post(`${path}/cancel`)]) {
      expect(status).toBe(403);
    }
    expect((await findOrder(order.order_id)).order_status).toBe('UN_PAID');
  });

  test('of a live merchant cannot have a simulated payment', async () => {
    const order = await newOrder();
    const path = `/orders/${order.service_order_id}`;
    expect((await visitor.get(path)).text).not.toContain('simulate');
    expect((await visitor.post(`${path}/simulate`, { outcome: 'pay' })).status).toBe(404);
    expect((await findOrder(order.order_id)).order_status).toBe('UN_PAID');
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
  expect((await findOrder(order.order_id)).order_status).toBe('UN_PAID');
});

test('every page shows markup in an order as text', async () => {
  const hostile = `"><script>x</script><img src=x onerror=x>'&amp;`;
  const shop = await gateway.newMerchant(hostile, 'test');
  const order = await createOrder(shop, hostile, { order_note: hostile, metadata: { a: hostile } });
  const person = await signIn(shop, { name: hostile });
  const path = `/orders/${order.service_order_id}`;
  await person.post(`${path}/simulate`, { outcome: 'pay' });
  await person.post(`${path}/refunds`, { refund_id: hostile, refund_amount: '1' });
  const query = `q=${encodeURIComponent(hostile)}1&metadata_key=${encodeURIComponent(hostile)}`;
  for (const page of [
    '/orders',
    path,
    `${path}/cancel`,
    `${path}/payments`,
    `${path}/refunds`,
    `${path}/refunds?refund_amount=1`,
    '/sessions',
    '/new-order',
    `/orders?${query}`,
    `/search?${query}`,
  ]) {
    const { text } = await person.get(page);
    expect([page, text.includes('<script>'), text.includes('<img')]).toEqual([page, false, false]);
    expect([page, text.includes('&lt;script&gt;')]).toEqual([page, true]);
  }
  const { text } = await person.post('/new-order', { order_note: hostile, customer_name: hostile });
  expect([text.includes('<script>'), text.includes('&lt;script&gt;')]).toEqual([false, true]);
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

describe('the export', () => {
  test('has all orders of the list, and disarms texts that a spreadsheet would execute as formulas', async () => {
    const shop = await gateway.newMerchant();
    const notes = {
      '=1+1': "'=1+1",
      '+1': "'+1",
      '-1': "'-1",
      '@x': "'@x",
      '\t=1': "'\t'=1",
      '＝1': "'＝1",
      'x;=1+1;y': "x;'=1+1;y",
      'x,-1|@y': "x,'-1|'@y",
      'x;"=1+1&': `x;"'=1+1&`,
      'two\n+1\tlines': "two\n'+1\tlines",
      '=HYPERLINK("x","y")': `'=HYPERLINK("x","y")`,
      'a - b = c, d': 'a - b = c, d',
      'x"y': 'x"y',
    };
    const formulas = Object.keys(notes);
    const metadata = { cart: 'x;=1' };
    for (const [index, order_note] of formulas.entries())
      await createOrder(shop, `=${index}`, { order_note, metadata });
    const { headers, text } = await (await signIn(shop, { role: 'read' })).get('/orders.csv');
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(headers.get('content-disposition')).toBe('attachment; filename="orders.csv"');
    const [head = '', ...rows] = rowsIn(text);
    expect(head[0]).toBe('service_order_id');
    const column = (name: string) => rows.map((row) => row[head.indexOf(name)]).toReversed();
    expect(column('order_note')).toEqual(Object.values(notes));
    expect(column('metadata')).toEqual(formulas.map(() => `{"cart":"x;'=1"}`));
    expect(column('order_id')).toEqual(formulas.map((_, index) => `'=${index}`));
    const { body } = await callJson(shop, 'GET', `/order/${encodeURIComponent('=0')}`);
    expect(head).toEqual(expect.arrayContaining(Object.keys(body)));
  });

  test('has what was given back as a number, and the disputes with their status, after the columns of the order', async () => {
    const shop = await gateway.newMerchant();
    const { order_token } = await createOrder(shop, 'returned');
    await gateway.accounts.setMakesRefunds(gateway.checkout.credentials.clientId, true);
    await postPayment(gateway.checkout, order_token, { payment_id: `pays ${order_token}` });
    const report = (method: string, body: object) =>
      postJson(gateway.checkout, `/gateway.v1.CheckoutService/${method}`, {
        ...{ order_token, payment_id: `pays ${order_token}` },
        ...body,
      });
    await report('RecordRefund', { provider_refund_id: `re ${order_token}`, amount: 4.5, status: 'SUCCEEDED' });
    const dispute = { dispute_id: 'dp_1', amount: 20, currency: 'EUR', status: 'LOST' };
    await report('RecordDispute', dispute);
    const { text } = await (await signIn(shop, { role: 'read' })).get('/orders.csv');
    const [head = [], row = []] = rowsIn(text);
    const names = ['payment_method', 'refunds', 'refunded_amount', 'disputes'];
    expect(head.filter((name) => names.includes(name))).toEqual(names);
    expect(row[head.indexOf('refunded_amount')]).toBe('4.5');
    expect(text).toContain(',4.5,');
    expect(JSON.parse(row[head.indexOf('disputes')] ?? '')).toMatchObject([dispute]);
  });

  test('quotes every text, but no number', async () => {
    const shop = await gateway.newMerchant();
    const order = await createOrder(shop, 'plain');
    const { text } = await (await signIn(shop)).get('/orders.csv');
    const [head, line] = text.split('\r\n');
    expect(head).toMatch(/^\ufeff?"service_order_id","/);
    const { service_order_id, created_at, order_token, payment_link } = order;
    expect(line).toContain(`${service_order_id},"${created_at}","plain","UN_PAID","${order_token}","${payment_link}",`);
    expect(line).toContain(',1249.5,"EUR",');
  });

  test('starts with a byte order mark, includes the orders of all pages, and applies the filters', async () => {
    const metadata = { batch: `${Math.random()}` };
    const orders = [];
    for (let count = 0; count < 103; count += 1) orders.push(await newOrder({ metadata }));
    const response = await fetch(
      `${gateway.url}/console/orders.csv?metadata_key=batch&metadata_value=${metadata.batch}`,
      { headers: { cookie: clerk.cookie } },
    );
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect([...bytes.slice(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    const [, ...rows] = rowsIn(new TextDecoder().decode(bytes));
    expect(rows.map((row) => row[2])).toEqual(orders.map(({ order_id }) => order_id).toReversed());
  });

  /** Parses CSV (RFC 4180). */
  function rowsIn(text: string): string[][] {
    const rows: string[][] = [[]];
    for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
      rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
      if (end === '\r\n') rows.push([]);
    }
    return rows.slice(0, -1);
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
