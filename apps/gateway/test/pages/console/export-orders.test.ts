import { describe, expect, test } from 'vitest';
import { signIn } from '../../helpers/console-visitor.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postJson, postPayment } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true, baseUrl: 'https://pay.example.com' });

describe('the export of orders', () => {
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

  test('has the refunded amount as a number, and the disputes with their status, after the columns of the order', async () => {
    const shop = await gateway.newMerchant();
    const { order_token } = await createOrder(shop, 'returned');
    await gateway.accounts.setMakesRefunds(gateway.checkout.credentials.clientId, true);
    await postPayment(gateway.checkout, order_token, { payment_id: `pays ${order_token}` });
    const report = (method: string, body: object) =>
      postJson(gateway.checkout, `/gateway.v1.CheckoutService/${method}`, {
        order_token,
        payment_id: `pays ${order_token}`,
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
    for (let count = 0; count < 103; count += 1)
      orders.push(await createOrder(gateway, `exported-${count}`, { metadata }));
    await createOrder(gateway, 'not exported');
    const clerk = await signIn(gateway, { role: 'read' });
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
