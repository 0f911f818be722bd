import { pageTexts } from '@order-gateway/pages/localization';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { describe, expect, test } from 'vitest';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postJson } from '../../helpers/send-order.ts';

const origin = 'https://pay.gateway.test';

const gateway = useGateway({ mode: 'test', baseUrl: `${origin}/eu` });

/** Creates a test order and returns its token. */
async function newToken(orderId: string, overrides = {}): Promise<string> {
  return (await createOrder(gateway, orderId, overrides)).order_token;
}

/** Sends the form of a page, without the headers of a browser unless `headers` has them. */
async function simulate(token: string, body: string, headers: Record<string, string> = {}, method = 'POST') {
  const response = await fetch(`${gateway.url}/payment/${token}/simulate`, {
    method,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
    redirect: 'manual',
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const find = async (orderId: string) => (await callJson(gateway, 'GET', `/order/${orderId}`)).body;

/** Returns the types of an order's events. */
async function eventsOf(orderId: string): Promise<string[]> {
  const rows = await runQuery(
    gateway.databaseUrl,
    `select type from events where order_id = '${orderId}' order by event_id`,
  );
  return rows.map(({ type }) => type);
}

async function expire(orderId: string): Promise<void> {
  await runQuery(
    gateway.databaseUrl,
    `update orders set order_expires_at = now() - interval '1 s' where order_id = '${orderId}'`,
  );
}

const callOf = (requestId: string) => gateway.calls.find(({ request_id }) => request_id === requestId);

const cancel = (orderId: string) => callJson(gateway, 'POST', `/order/${orderId}/cancel`);

/** Like {@link simulate}, but returns the response as JSON. */
async function simulateInJson(token: string, body: string, headers: Record<string, string> = {}) {
  const { status, text } = await simulate(token, body, { ...headers, accept: 'application/json' });
  return { status, body: JSON.parse(text) };
}

describe('POST /payment/{order_token}/simulate with outcome=pay', () => {
  test('303: pays the order in full, once, and redirects to the return URL each time', async () => {
    const before = Date.now();
    const token = await newToken('paid');
    const { status, headers, text } = await simulate(token, 'outcome=pay');
    const record = await find('paid');
    expect([status, text]).toEqual([303, '']);
    expect(headers.get('location')).toBe(
      `https://shop.example.com/checkout/return?cart=5521&order_id=paid&service_order_id=${record.service_order_id}&order_status=PAID`,
    );
    expect(record).toMatchObject({ order_status: 'PAID', payment_id: expect.stringMatching(/^test_[0-9A-Za-z]{24}$/) });
    expect(Date.parse(record.paid_at)).toBeGreaterThanOrEqual(before);
    const second = await simulate(token, 'outcome=pay');
    expect([second.status, second.headers.get('location')]).toEqual([303, headers.get('location')]);
    expect(await find('paid')).toEqual(record);
    expect(await eventsOf('paid')).toEqual(['order.paid']);
  });

  test('303: one of many concurrent payments counts, and all redirect to the return URL', async () => {
    const token = await newToken('paid-at-once');
    const all = await Promise.all(Array.from({ length: 20 }, () => simulate(token, 'outcome=pay')));
    const locations = all.map(({ status, headers }) => `${status} ${headers.get('location')}`);
    expect(new Set(locations)).toEqual(new Set([expect.stringMatching(/^303 .*&order_status=PAID$/)]));
    expect(await eventsOf('paid-at-once')).toEqual(['order.paid']);
  });

  test.each([
    ['EXPIRED', 'expiredText', 'order_expired', expire],
    ['CANCELLED', 'cancelledText', 'order_cancelled', cancel],
  ] as const)('409: the page of an order that is %s', async (orderStatus, sentence, code, endOrder) => {
    const token = await newToken(orderStatus);
    await endOrder(orderStatus);
    for (const outcome of ['pay', 'decline']) {
      const requestId = `${orderStatus}-${outcome}`;
      const { status, text } = await simulate(token, `outcome=${outcome}`, { 'x-request-id': requestId });
      expect(status).toBe(409);
      expect(text).toContain(pageTexts.en[sentence].replace('{merchant}', '<bdi>Test Shop</bdi>'));
      expect(text).not.toContain('<form');
      const asJson = await simulateInJson(token, `outcome=${outcome}`);
      expect(asJson).toMatchObject({ status: 409, body: { order_status: orderStatus } });
      await expect.poll(() => callOf(requestId)).toMatchObject({ code });
    }
    expect(await find(orderStatus)).toMatchObject({ order_status: orderStatus });
  });
});

describe('POST /payment/{order_token}/simulate with outcome=decline', () => {
  test('200: shows the page again with a notice, and the order can still be paid', async () => {
    const token = await newToken('declined');
    const { status, text } = await simulate(token, 'outcome=decline', { 'accept-language': 'fr' });
    expect(status).toBe(200);
    for (const shown of [pageTexts.fr.declined, pageTexts.fr.simulate, `action="/eu/payment/${token}/simulate"`]) {
      expect(text).toContain(shown);
    }
    const asJson = await simulateInJson(token, 'outcome=decline');
    expect(asJson).toMatchObject({ status: 200, body: { order_status: 'UN_PAID', mode: 'test' } });
    expect(await find('declined')).toMatchObject({ order_status: 'UN_PAID' });
    expect(await eventsOf('declined')).toEqual([]);
    expect((await simulate(token, 'outcome=pay')).status).toBe(303);
  });

  test('409: the page of a paid order, without a notice', async () => {
    const token = await newToken('declined-late');
    await simulate(token, 'outcome=pay');
    const { status, text } = await simulate(token, 'outcome=decline');
    expect([status, text.includes(pageTexts.en.declined), text.includes('<form')]).toEqual([409, false, false]);
    expect(text).toContain(pageTexts.en.paid);
  });
});

describe('POST /payment/{order_token}/simulate with outcome=expire', () => {
  test.each([undefined, new Date(Date.now() + 3_600_000).toISOString()])(
    '200: an order with the expiry %s expires immediately, and only once',
    async (order_expires_at) => {
      const orderId = `expired-now-${order_expires_at !== undefined}`;
      const token = await newToken(orderId, { order_expires_at });
      for (const _ of ['first', 'again']) {
        const { status, text } = await simulate(token, 'outcome=expire');
        expect([status, text.includes(pageTexts.en.expired), text.includes('<form')]).toEqual([200, true, false]);
      }
      const record = await find(orderId);
      expect(record.order_status).toBe('EXPIRED');
      expect(Date.parse(record.order_expires_at)).toBeLessThanOrEqual(Date.now() + 60_000);
      expect(await eventsOf(orderId)).toEqual(['order.expired']);
    },
  );

  test.each([
    ['PAID', (token: string) => simulate(token, 'outcome=pay')],
    ['CANCELLED', () => cancel('not-expired-CANCELLED')],
  ] as const)('409: an order that is %s does not expire', async (orderStatus, endOrder) => {
    const orderId = `not-expired-${orderStatus}`;
    const token = await newToken(orderId);
    await endOrder(token);
    const asJson = await simulateInJson(token, 'outcome=expire');
    expect(asJson).toMatchObject({ status: 409, body: { order_status: orderStatus } });
  });
});

describe('POST /payment/{order_token}/simulate with outcome=pay_late', () => {
  test.each([
    ['UN_PAID', 'order_expired', ['order.expired'], () => {}],
    ['PAID', 'order_already_paid', ['order.paid'], (token: string) => simulate(token, 'outcome=pay')],
    ['CANCELLED', 'order_cancelled', ['order.cancelled'], () => cancel('late-CANCELLED')],
  ] as const)(
    '409: a late payment of an order that was %s long before its expiry is refused, and recorded once',
    async (status, code, events, endOrder) => {
      const orderId = `late-${status}`;
      const token = await newToken(orderId, { order_expires_at: new Date(Date.now() + 3_600_000).toISOString() });
      await endOrder(token);
      for (const _ of ['first', 'again']) {
        expect(await simulateInJson(token, 'outcome=pay_late')).toMatchObject({ status: 409 });
      }
      expect((await find(orderId)).refused_payments).toEqual([
        expect.objectContaining({ code, payment_id: expect.stringMatching(/^test_[0-9A-Za-z]{24}$/) }),
      ]);
      expect(await eventsOf(orderId)).toEqual([...events, 'order.payment_refused']);
    },
  );
});

test('409: one of many concurrent late payments is refused and recorded', async () => {
  const token = await newToken('late-at-once');
  const all = await Promise.all(Array.from({ length: 20 }, () => simulate(token, 'outcome=pay_late')));
  expect(new Set(all.map(({ status }) => status))).toEqual(new Set([409]));
  expect((await find('late-at-once')).refused_payments).toHaveLength(1);
  expect(await eventsOf('late-at-once')).toEqual(['order.expired', 'order.payment_refused']);
});

test('409: a late payment is not recorded again after 20 other refused payments', async () => {
  const token = await newToken('late-and-refused');
  await simulate(token, 'outcome=pay_late');
  const paid = { paid_at: new Date().toISOString(), order_amount: 1, order_currency: 'EUR' };
  for (const number of Array(20).keys()) {
    const payment = { order_token: token, payment_id: `refused-${number}`, ...paid };
    await postJson(gateway.checkout, '/gateway.v1.CheckoutService/RecordPayment', payment);
  }
  expect((await simulate(token, 'outcome=pay_late')).status).toBe(409);
  expect(await eventsOf('late-and-refused')).toEqual(['order.expired', ...Array(21).fill('order.payment_refused')]);
});

test('409: while a payment is in progress, the form simulates nothing and the page says so', async () => {
  const token = await newToken('in-progress');
  const attempt = { order_token: token, attempt_id: 'a-1' };
  await postJson(gateway.checkout, '/gateway.v1.CheckoutService/StartPayment', attempt);
  for (const outcome of ['pay', 'decline', 'expire', 'pay_late']) {
    const { status, text } = await simulate(token, `outcome=${outcome}`);
    expect([status, text.includes(pageTexts.en.inProgressText), text.includes('<form')]).toEqual([409, true, false]);
  }
  expect(await find('in-progress')).toMatchObject({ order_status: 'UN_PAID' });
  expect(await eventsOf('in-progress')).toEqual([]);
});

describe('POST /payment/{order_token}/simulate: errors', () => {
  test.each(['multipart/form-data; boundary=x', 'text/plain', 'application/json'])(
    'a form of the media type %s: 415, and the order is not paid',
    async (type) => {
      const orderId = `form-${type.length}`;
      const token = await newToken(orderId);
      const form = '--x\r\ncontent-disposition: form-data; name="outcome"\r\n\r\npay\r\n--x--\r\n';
      const body = type.startsWith('multipart') ? form : 'outcome=pay';
      expect(await simulateInJson(token, body, { 'content-type': type })).toMatchObject({
        status: 415,
        body: { code: 'unsupported_media_type' },
      });
      expect((await find(orderId)).order_status).toBe('UN_PAID');
    },
  );

  test.each([
    '',
    'outcome=pay&outcome=decline',
    'outcome=decline&outcome=pay&x',
    'outcome=',
    'outcome=Pay',
    'outcome=paid',
    'result=pay',
    '{"outcome":"pay"}',
    'outcome%00=pay',
  ])('400: the body %j', async (body) => {
    const token = await newToken(`invalid-${body.length}`);
    const { status, text, headers } = await simulate(token, body);
    expect([status, headers.get('content-type')]).toEqual([400, expect.stringContaining('application/problem+json')]);
    expect(JSON.parse(text)).toMatchObject({
      code: 'invalid_request',
      errors: [{ field: 'outcome', code: 'not_allowed', message: 'must be one of pay, decline, expire, pay_late' }],
    });
  });

  test('413: a body of more than 64 KiB', async () => {
    const { status, text } = await simulate(await newToken('large'), `outcome=pay&x=${'x'.repeat(65_536)}`);
    expect([status, JSON.parse(text)]).toMatchObject([413, { code: 'body_too_large' }]);
  });

  test('404: a live order gets the same response as an unknown one', async () => {
    const live = await gateway.newMerchant();
    const { order_token } = await createOrder(live, 'live');
    const page = await (await fetch(`${gateway.url}/payment/unknown`)).text();
    for (const token of [order_token, 'A'.repeat(32), 'x', '%F0%9F%98%80', '%2F']) {
      for (const body of ['outcome=pay', 'outcome=decline', 'outcome=x']) {
        const { status, text } = await simulate(token, body);
        expect([status, text], token).toEqual([404, page]);
      }
      const asJson = await simulateInJson(token, 'outcome=pay');
      expect(asJson).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
    expect((await callJson(live, 'GET', '/order/live')).body).toMatchObject({ order_status: 'UN_PAID' });
  });

  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'QUERY'])('405: %s with any body', async (method) => {
    const token = await newToken(`by-${method}`);
    for (const body of ['outcome=pay', 'x'.repeat(70_000)]) {
      const { status, headers } = await simulate(token, body, {}, method);
      expect([status, headers.get('allow')]).toEqual([405, 'POST']);
    }
    expect(await find(`by-${method}`)).toMatchObject({ order_status: 'UN_PAID' });
  });
});

describe('POST /payment/{order_token}/simulate from a browser', () => {
  test.each<[number, Record<string, string>]>([
    [303, { 'sec-fetch-site': 'same-origin', origin }],
    // The origin under Referrer-Policy: no-referrer.
    [303, { 'sec-fetch-site': 'same-origin', origin: 'null' }],
    [303, { origin }],
    [303, {}],
    [403, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    [403, { 'sec-fetch-site': 'cross-site', origin }],
    [403, { 'sec-fetch-site': 'same-site', origin: 'https://shop.gateway.test' }],
    [403, { 'sec-fetch-site': 'none' }],
    [403, { 'sec-fetch-site': '' }],
    [403, { origin: 'https://evil.example' }],
    [403, { origin: 'null' }],
    [403, { origin: '' }],
    [403, { origin: `${origin}:8443` }],
    [403, { origin: 'http://pay.gateway.test' }],
    [403, { origin: `${origin}.evil.example` }],
    [403, { origin: `${origin}/eu` }],
  ])('%i with %o', async (expected, headers) => {
    const orderId = `from-${Math.random()}`;
    const { status, text } = await simulate(await newToken(orderId), 'outcome=pay', headers);
    expect(status).toBe(expected);
    expect(await find(orderId)).toMatchObject({ order_status: expected === 303 ? 'PAID' : 'UN_PAID' });
    if (expected !== 403) return;
    expect(text).toContain(pageTexts.en.rejectedTitle);
    const asJson = await simulateInJson(await newToken(`${orderId}-json`), 'outcome=pay', headers);
    expect(asJson).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
  });
});

test('every response has the headers of the page, and form-action allows other sites only if there is a form', async () => {
  const token = await newToken('headers');
  const declined = await simulate(token, 'outcome=decline');
  const furtherResponses = [
    await simulate(token, 'outcome=x'),
    await simulate(token, '', { origin: 'null' }),
    await simulate(token, '', {}, 'GET'),
    await simulate('unknown', 'outcome=pay'),
    await simulate(token, 'outcome=pay'),
    await simulate(token, 'outcome=decline'),
  ];
  expect(furtherResponses.map(({ status }) => status)).toEqual([400, 403, 405, 404, 303, 409]);
  for (const { headers } of [declined, ...furtherResponses]) {
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-frame-options')).toBe('DENY');
  }
  const formActionOf = (headers: Headers) =>
    /form-action ([^;]+);/.exec(headers.get('content-security-policy') ?? '')?.[1];
  expect(formActionOf(declined.headers)).toBe("'self' http: https:");
  for (const { headers } of furtherResponses) expect(formActionOf(headers)).toBe("'none'");
});

test('logs the call without the token', async () => {
  const token = await newToken('logged');
  await simulate(token, 'outcome=pay', { 'x-request-id': 'simulated' });
  await expect.poll(() => callOf('simulated')).toMatchObject({ code: 'ok' });
  expect(JSON.stringify(gateway.calls)).not.toContain(token);
  expect(gateway.errors).toEqual([]);
});
