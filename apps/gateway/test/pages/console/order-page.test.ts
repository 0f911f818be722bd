import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { describe, expect, test } from 'vitest';
import type { OrderRecord } from '../../../src/operations/orders.ts';
import { auditLogOf, signIn, useVisitors } from '../../helpers/console-visitor.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postPayment } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true, baseUrl: 'https://pay.example.com' });

const { visitor, clerk, otherVisitor } = useVisitors(gateway);

const newOrder = (overrides: Record<string, unknown> = {}) =>
  createOrder(gateway, `console-${Math.random()}`, overrides);

const findOrder = async (orderId: string): Promise<OrderRecord> =>
  (await callJson(gateway, 'GET', `/order/${encodeURIComponent(orderId)}`)).body;

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
        expect.stringMatching(/^Payment wrong of .* refused: the amount or the currency is different\./),
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

  test('shows what is wrong with a manual payment beside its fields, and keeps what was typed', async () => {
    const { service_order_id } = await newOrder();
    const path = `/orders/${service_order_id}/payments`;
    const payment = { payment_id: 'p'.repeat(129), paid_on: '', payment_note: 'Paid at the <counter>' };
    const rejected = await visitor.post(path, payment);
    const again = await visitor.post(path, { ...payment, form_token: '' });
    expect([rejected.status, again.status]).toEqual([400, 403]);
    for (const { text } of [rejected, again]) {
      expect(text).toContain(`value="${payment.payment_id}" name="payment_id"`);
      expect(text).toContain('value="" name="paid_on"');
      expect(text).toContain('value="Paid at the &lt;counter&gt;" name="payment_note"');
    }
    for (const name of ['payment_id', 'paid_on']) expect(rejected.text).toContain(`id="${name}-error"`);
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
