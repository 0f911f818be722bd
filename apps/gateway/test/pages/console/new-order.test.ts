import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { auditLogOf, signIn } from '../../helpers/console-visitor.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true, mode: 'test' });

/** Returns the fields of a form that creates a valid order. */
function validForm(overrides: Record<string, string> = {}): Record<string, string> {
  const { order_checksum: _checksum, order_amount, ...input } = validOrderInput({ order_id: `form-${Math.random()}` });
  const texts = Object.entries({ ...input, order_amount }).map(([name, value]) => [name, `${value ?? ''}`]);
  return { ...Object.fromEntries(texts), ...overrides };
}

test('the form creates an order with its values once, even if it is sent twice, and redirects to the order', async () => {
  const visitor = await signIn(gateway);
  const form = validForm({ order_amount: ' 1249.50 ', order_note: 'Invoice 7\r\nTwo lines' });
  const { status, headers } = await visitor.post('/new-order', form);
  const { body } = await callJson(gateway, 'GET', `/order/${form.order_id}`);
  expect([status, headers.get('location')]).toEqual([303, `/console/orders/${body.service_order_id}`]);
  expect(body).toMatchObject({ order_amount: 1249.5, order_note: 'Invoice 7\nTwo lines', order_status: 'UN_PAID' });
  // Phones can't open a local address, so there is no QR code.
  expect((await visitor.get(`/orders/${body.service_order_id}`)).text).not.toContain('<svg');
  const repeated = await visitor.post('/new-order', form);
  expect(repeated.headers.get('location')).toBe(headers.get('location'));
  const conflict = await visitor.post('/new-order', { ...form, order_amount: '1' });
  expect([conflict.status, conflict.text]).toEqual([409, expect.stringContaining('order_amount')]);
});

test.each([
  ['49,90', 49.9],
  ['1.249,50', 1_249.5],
  ['1,249.50', 1_249.5],
])('the amount can be written as %s', async (order_amount, amount) => {
  const visitor = await signIn(gateway);
  const form = validForm({ order_amount });
  expect((await visitor.post('/new-order', form)).status).toBe(303);
  expect((await callJson(gateway, 'GET', `/order/${form.order_id}`)).body.order_amount).toBe(amount);
});

test('an amount that languages read differently is rejected beside its field, and kept', async () => {
  const visitor = await signIn(gateway);
  const form = validForm({ order_amount: '1.500' });
  const { status, text } = await visitor.post('/new-order', form);
  expect([status, text]).toEqual([400, expect.stringContaining('value="1.500" name="order_amount"')]);
  expect(text).toContain('id="order_amount-error">must be a number that means the same in every language');
  expect((await callJson(gateway, 'GET', `/order/${form.order_id}`)).status).toBe(404);
});

test('the second link of a merchant needs only amount, description, name and email', async () => {
  const shop = await gateway.newMerchant('Link Shop', 'test');
  const visitor = await signIn(shop);
  const suggestionIn = (text: string, name: string) =>
    new RegExp(`value="([^"]*)" name="${name}"`).exec(text)?.[1] ?? '';
  const first = (await visitor.get('/new-order')).text;
  // The first link needs the address to which the customer returns.
  expect(first).toContain('<details open><summary>More fields');
  expect(first.indexOf('name="customer_email"')).toBeLessThan(first.indexOf('<details'));
  for (const name of ['order_amount', 'customer_name', 'customer_phone', 'order_expires_at']) {
    expect(first).toContain(`value="" name="${name}"`);
  }
  const typed = {
    order_amount: '49.90',
    order_note: 'Invoice 7',
    customer_name: 'Grace',
    customer_email: 'grace@example.com',
  };
  const order_expires_at = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 16);
  const settings = { order_currency: 'CHF', service_type: 'PHYSICAL_GOODS', return_url: 'https://shop.example.com/7' };
  const personal = { customer_phone: '+1 555 0100', customer_address_line1: '1 Main Street' };
  const order_id = suggestionIn(first, 'order_id');
  const form = { ...typed, ...settings, ...personal, order_id, order_expires_at };
  expect((await visitor.post('/new-order', form)).status).toBe(303);
  expect((await callJson(shop, 'GET', `/order/${order_id}`)).body.order_expires_at).toBe(
    `${order_expires_at}:00.000+00:00`,
  );

  const second = (await visitor.get('/new-order')).text;
  expect(second).toContain('<details><summary>More fields');
  expect(second).toContain('<option value="CHF" selected>');
  expect(second).toContain('<option value="PHYSICAL_GOODS" selected>');
  expect(suggestionIn(second, 'return_url')).toBe(settings.return_url);
  const suggestedEndMs = Date.parse(`${suggestionIn(second, 'order_expires_at')}Z`);
  expect(Math.abs(suggestedEndMs - Date.parse(`${order_expires_at}Z`))).toBeLessThan(600_000);
  // Another customer's data is not suggested.
  for (const value of [typed.customer_name, typed.order_note, ...Object.values(personal)]) {
    expect(second).not.toContain(value);
  }
  const suggested = { ...settings, order_id: suggestionIn(second, 'order_id') };
  expect(suggested.order_id).not.toBe(order_id);
  expect((await visitor.post('/new-order', { ...typed, ...suggested })).status).toBe(303);
  expect((await callJson(shop, 'GET', `/order/${suggested.order_id}`)).body).toMatchObject({ order_currency: 'CHF' });
});

test('an invalid form shows each error and its code beside the field, keeps the typed values, and creates no order', async () => {
  const visitor = await signIn(gateway);
  const form = validForm({ order_amount: '10.001', customer_email: 'nobody', order_note: '', order_currency: 'JPY' });
  const { status, text } = await visitor.post('/new-order', form);
  expect(status).toBe(400);
  const errors = [...text.matchAll(/id="(\w+)-error">[^(]*\((\w+)\)/g)].map(([, field, code]) => [field, code]);
  expect(errors.toSorted()).toEqual([
    ['customer_email', 'bad_format'],
    ['order_amount', 'too_precise'],
    ['order_note', 'missing'],
  ]);
  expect(text).toContain('value="10.001" name="order_amount"');
  expect(text).toContain('value="nobody" name="customer_email"');
  expect(text).toContain('<option value="JPY" selected>');
  expect((await callJson(gateway, 'GET', `/order/${form.order_id}`)).status).toBe(404);
});

test('the audit log contains only the orders that were created', async () => {
  const visitor = await signIn(gateway);
  const entries = () => auditLogOf(gateway, 'order.create');
  const before = await entries();
  for (const order_id of ['\0', 'x'.repeat(10_000), '']) {
    expect((await visitor.post('/new-order', validForm({ order_id }))).status).toBe(400);
  }
  expect(await entries()).toEqual(before);
  const form = validForm();
  await visitor.post('/new-order', form);
  expect(await entries()).toEqual([
    ...before,
    { actor: 'console:Ada', details: { order_id: form.order_id, role: 'manage' } },
  ]);
});

test('the form works for a merchant whose orders require a checksum', async () => {
  const shop = await gateway.newMerchant('Strict Shop');
  await gateway.accounts.setChecksumMode(shop.credentials.clientId, 'required');
  const visitor = await signIn(shop);
  expect((await visitor.post('/new-order', validForm())).status).toBe(303);
});

test('a person with the role `read` can neither open nor send the form', async () => {
  const clerk = await signIn(gateway, { role: 'read' });
  const form = validForm();
  expect((await clerk.get('/orders')).text).not.toContain('/new-order');
  expect([(await clerk.get('/new-order')).status, (await clerk.post('/new-order', form)).status]).toEqual([403, 403]);
  expect((await callJson(gateway, 'GET', `/order/${form.order_id}`)).status).toBe(404);
});

test.each([
  ['pay', 'PAID'],
  ['decline', 'UN_PAID'],
  ['expire', 'EXPIRED'],
  ['pay_late', 'EXPIRED'],
])('in test mode, %s can be simulated', async (outcome, status) => {
  const visitor = await signIn(gateway);
  const form = validForm();
  const { headers } = await visitor.post('/new-order', form);
  const path = headers.get('location')?.replace('/console', '') ?? '';
  const page = await visitor.get(path);
  expect(page.text).toContain('<p class="test">Test mode: no money moves</p>');
  await visitor.post(`${path}/simulate`, { outcome });
  expect((await callJson(gateway, 'GET', `/order/${form.order_id}`)).body.order_status).toBe(status);
});
