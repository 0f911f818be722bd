import { beforeAll, describe, expect, test } from 'vitest';
import { auditLogOf, type PageResponse, request, signIn } from '../../helpers/console-visitor.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postJson, postPayment, pressPay } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasConsole: true });

let visitor: Awaited<ReturnType<typeof signIn>>;
let clerk: typeof visitor;
beforeAll(async () => {
  await gateway.accounts.setMakesRefunds(gateway.checkout.credentials.clientId, true);
  visitor = await signIn(gateway);
  clerk = await signIn(gateway, { name: 'Bob', role: 'read' });
});

const recordOf = async (orderId: string) => (await callJson(gateway, 'GET', `/order/${orderId}`)).body;

async function paidOrder() {
  const order = await createOrder(gateway, `refund-${Math.random()}`);
  await postPayment(gateway.checkout, order.order_token, { payment_id: `pay-${order.order_id}` });
  return { ...order, payment_id: `pay-${order.order_id}`, path: `/orders/${order.service_order_id}` };
}

/** Reports a refund or dispute of the payment of an order as its checkout system does. */
async function report(method: string, { order_token, payment_id }: Record<string, unknown>, fields: object) {
  const body = { order_token, payment_id, ...fields };
  expect((await postJson(gateway.checkout, `/gateway.v1.CheckoutService/${method}`, body)).status).toBe(200);
}

const hiddenIn = ({ text }: PageResponse, name: string) =>
  new RegExp(`type="hidden" name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? '';

/** Returns the texts of the timeline, oldest first. */
const timelineIn = ({ text }: PageResponse) =>
  [...text.matchAll(/<li><time[^>]+>[^<]+<\/time>(.*?)<\/li>/gs)].map(([, entry = '']) =>
    entry.replaceAll(/<[^>]+>/g, ''),
  );

describe('a refund', () => {
  test('is made after a confirmation that repeats the amount and the order, and only once even if the form is sent twice', async () => {
    const { path, order_id } = await paidOrder();
    expect((await visitor.get(path)).text).toContain(`href="/console${path}/refunds"`);
    const form = await visitor.get(`${path}/refunds`);
    expect(form.text).toContain(`Refund order ${order_id}`);
    expect(form.text).toContain('value="1249.50" name="refund_amount"');
    const confirmation = await visitor.get(`${path}/refunds?refund_amount=200%2C5`);
    expect(confirmation.text).toContain(`<h1>Refund €200.50 EUR of order ${order_id}?</h1>`);
    expect(confirmation.text).toContain('>Refund €200.50 EUR</button>');
    expect((await recordOf(order_id)).refunds).toBeUndefined();
    const refund_id = hiddenIn(confirmation, 'refund_id');
    const refund_amount = hiddenIn(confirmation, 'refund_amount');
    for (const _click of [1, 2]) {
      const sent = await visitor.post(`${path}/refunds`, { refund_id, refund_amount, refund_note: 'One of two' });
      expect([sent.status, sent.headers.get('location')]).toEqual([303, `/console${path}`]);
    }
    expect((await recordOf(order_id)).refunds).toMatchObject([
      { refund_id, amount: 200.5, status: 'PENDING', refund_note: 'One of two' },
    ]);
    const entry = { actor: 'console:Ada', details: { order_id, refund_id, refund_amount: '200.50', role: 'manage' } };
    expect(await auditLogOf(gateway, 'order.refund')).toEqual([entry, entry]);
    expect((await visitor.get(`${path}/refunds`)).text).toContain('value="1049.00" name="refund_amount"');
  });

  test.each([
    ['more than is left', '1249.51', 409, 'role="alert">'],
    ['an amount with two meanings', '1,249', 400, 'such as 1500 or 1500.00'],
    ['an amount that is too precise', '1.005', 400, 'id="refund_amount-error"'],
    ['no amount', '', 400, 'id="refund_amount-error"'],
  ])('of %s is rejected before and after the confirmation', async (_case, refund_amount, status, text) => {
    const { path, order_id } = await paidOrder();
    const rejected = await visitor.get(`${path}/refunds?${new URLSearchParams({ refund_amount })}`);
    expect([rejected.status, rejected.text]).toEqual([status, expect.stringContaining(text)]);
    expect(rejected.text).toContain(`value="${refund_amount}" name="refund_amount"`);
    expect(hiddenIn(rejected, 'refund_id')).toBe('');
    expect((await visitor.post(`${path}/refunds`, { refund_id: 'forged', refund_amount })).status).toBe(status);
    expect((await recordOf(order_id)).refunds).toBeUndefined();
  });

  test.each([
    ['an id', { refund_id: 'a\0' }],
    ['an amount', { refund_amount: '1\0' }],
    ['a note', { refund_note: '\0' }],
  ])('with %s that is no text is rejected, and is not in the audit log', async (_case, changes) => {
    const { path, order_id } = await paidOrder();
    const sent = await visitor.post(`${path}/refunds`, { refund_id: 'a', refund_amount: '1', ...changes });
    expect([sent.status, sent.text]).toEqual([400, expect.stringContaining('role="alert">')]);
    const entries = await auditLogOf(gateway, 'order.refund');
    expect(entries.filter(({ details }) => details.order_id === order_id)).toEqual([]);
    expect(gateway.errors).toEqual([]);
  });

  test('of an order that is not paid, or of a payment that its checkout system cannot refund, is not offered', async () => {
    const unpaid = await createOrder(gateway, `unpaid-${Math.random()}`);
    const path = `/orders/${unpaid.service_order_id}`;
    expect((await visitor.get(path)).text).not.toContain('/refunds');
    expect((await visitor.get(`${path}/refunds`)).status).toBe(409);
    const other = await gateway.accounts.create('Other Checkout', 'checkout');
    await postPayment({ ...gateway.checkout, credentials: other }, unpaid.order_token);
    const form = await visitor.get(`${path}/refunds`);
    expect([form.status, form.text]).toEqual([409, expect.stringContaining('role="alert">')]);
  });

  test('is not offered to a person with the role `read`, and is rejected with 403', async () => {
    const { path, order_id } = await paidOrder();
    expect((await clerk.get(path)).text).not.toContain('/refunds');
    const form = { refund_id: 'r', refund_amount: '1' };
    for (const { status } of [await clerk.get(`${path}/refunds`), await clerk.post(`${path}/refunds`, form)])
      expect(status).toBe(403);
    expect((await recordOf(order_id)).refunds).toBeUndefined();
  });

  test('needs the form of this session and site', async () => {
    const { path, order_id } = await paidOrder();
    const form = { refund_id: 'r', refund_amount: '1' };
    const again = await visitor.post(`${path}/refunds`, { ...form, form_token: 'other' });
    expect([again.status, hiddenIn(again, 'refund_id'), hiddenIn(again, 'refund_amount')]).toEqual([403, 'r', '1.00']);
    const foreign = await visitor.post(`${path}/refunds`, form, { 'sec-fetch-site': 'cross-site' });
    expect(foreign.status).toBe(403);
    const signedOut = await request(`${gateway.url}/console${path}/refunds`, { form });
    expect(signedOut.status).toBe(401);
    expect((await recordOf(order_id)).refunds).toBeUndefined();
  });

  test('of an order of another merchant is not found', async () => {
    const { path, order_id } = await paidOrder();
    const other = await signIn(await gateway.newMerchant());
    const form = { refund_id: 'r', refund_amount: '1' };
    for (const { status } of [await other.get(`${path}/refunds`), await other.post(`${path}/refunds`, form)])
      expect(status).toBe(404);
    expect((await recordOf(order_id)).refunds).toBeUndefined();
  });

  test('of a payment that the merchant recorded says that the merchant returns the money', async () => {
    const { order_id, service_order_id, created_at } = await createOrder(gateway, `manual-${Math.random()}`);
    const path = `/orders/${service_order_id}`;
    await visitor.post(`${path}/payments`, { payment_id: `cash-${order_id}`, paid_on: created_at.slice(0, 10) });
    const confirmation = await visitor.get(`${path}/refunds?refund_amount=1249.50`);
    expect(confirmation.text).toContain('Continue only if you have already returned <bdi>€1,249.50 EUR</bdi>');
    await visitor.post(`${path}/refunds`, { refund_id: 'cash', refund_amount: '1249.50' });
    const refunded = await visitor.get(path);
    expect(refunded.text).toContain('<bdi>€1,249.50 EUR</bdi> refunded');
    expect(refunded.text).not.toContain('/refunds');
  });
});

describe('the timeline', () => {
  test('shows refunds and disputes with their statuses', async () => {
    const order = await paidOrder();
    const { path, payment_id } = order;
    await visitor.post(`${path}/refunds`, { refund_id: 'part', refund_amount: '100' });
    const part = { refund_id: 'part', amount: 100, provider_refund_id: 're_1' };
    await report('RecordRefund', order, { ...part, status: 'SUCCEEDED' });
    await report('RecordRefund', order, { ...part, status: 'FAILED', reason: 'card_closed' });
    await report('RecordRefund', order, { provider_refund_id: 're_2', amount: 50, status: 'SUCCEEDED' });
    const dispute = { dispute_id: 'dp_1', amount: 20, currency: 'EUR', reason: 'fraudulent' };
    for (const status of ['OPEN', 'LOST']) await report('RecordDispute', order, { ...dispute, status });
    const entries = timelineIn(await clerk.get(path)).filter((text) => /refunded|Refund|Dispute/.test(text));
    expect(entries).toEqual([
      `Refund part of €100.00 EUR of payment ${payment_id} requested`,
      `€100.00 EUR of payment ${payment_id} refunded, refund ID part`,
      `Refund part of €100.00 EUR of payment ${payment_id} failed: card_closed`,
      `€50.00 EUR of payment ${payment_id} refunded, refund ID re_2`,
      `Dispute dp_1 about €20.00 EUR of payment ${payment_id} began`,
      `Dispute dp_1 about €20.00 EUR of payment ${payment_id}: The customer keeps the money. fraudulent`,
    ]);
  });

  test('says that a refused payment has to be refunded, until it has been refunded', async () => {
    const order = await paidOrder();
    const refused = { ...order, payment_id: `second-${order.order_id}` };
    await postPayment(gateway.checkout, order.order_token, { payment_id: refused.payment_id });
    expect((await clerk.get(order.path)).text).toContain('The checkout system has to refund it.');
    await report('RecordRefund', refused, { provider_refund_id: 're_3', amount: 1249.5, status: 'SUCCEEDED' });
    const { text } = await clerk.get(order.path);
    expect(text).not.toContain('The checkout system has to refund it.');
    expect(text).toContain('The payment was refunded.');
  });
});

test('the refund of a simulated payment succeeds, fails, or fails later, as its note says', async () => {
  const shop = await gateway.newMerchant('Test Shop', 'test');
  const person = await signIn(shop);
  const byCheckout = await createOrder(shop, `by-checkout-${Math.random()}`);
  await postPayment(gateway.checkout, byCheckout.order_token);
  const confirmation = await person.get(`/orders/${byCheckout.service_order_id}/refunds?refund_amount=1`);
  expect([confirmation.status, confirmation.text]).toEqual([200, expect.not.stringContaining('the note “fail”')]);
  const order = await createOrder(shop, `simulated-${Math.random()}`);
  const path = `/orders/${order.service_order_id}`;
  await pressPay(order.payment_link);
  expect((await person.get(`${path}/refunds?refund_amount=1`)).text).toContain('With the note “fail” the refund fails');
  for (const refund_note of ['', 'fail', 'fail later'])
    await person.post(`${path}/refunds`, { refund_id: `note ${refund_note}`, refund_amount: '1', refund_note });
  const { refunds } = (await callJson(shop, 'GET', `/order/${order.order_id}`)).body;
  expect(refunds).toMatchObject([{ status: 'SUCCEEDED' }, { status: 'FAILED' }, { status: 'FAILED' }]);
  expect(timelineIn(await person.get(path)).filter((text) => text.includes(' refunded, '))).toHaveLength(2);
});
