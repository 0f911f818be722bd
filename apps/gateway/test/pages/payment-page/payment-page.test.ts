import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { pageLanguages, pageTexts } from '@order-gateway/pages/localization';
import { qrCodeSvg } from '@order-gateway/pages/qr-code';
import { describe, expect, test } from 'vitest';
import { type RunningGateway, runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postOrder, readOrder } from '../../helpers/send-order.ts';

const checkoutUrl = 'https://checkout.example.com/pay/{order_token}?from=link&kind=page';

const gateway = useGateway();
const withCheckout = useGateway({ checkoutUrl, baseUrl: 'https://pay.gateway.test/eu' });

interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function getPage({ url }: RunningGateway, token: string, headers: Record<string, string> = {}): Promise<Page> {
  const response = await fetch(`${url}/payment/${token}`, { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function newToken(merchant: RunningGateway): Promise<string> {
  return (await createOrder(merchant, `page-${Math.random()}`)).order_token;
}

const unknownToken = 'A'.repeat(32);

function withoutDate(headers: Headers | undefined): Record<string, string> {
  const { date, ...others } = Object.fromEntries(headers ?? []);
  return others;
}

describe('GET /payment/{order_token}', () => {
  test('200: the payment link of a new order shows merchant, amount, note and return link, and changes nothing', async () => {
    const order = validOrderInput({ order_id: 'shown', return_url: 'https://shop.example.com/back?cart=5&x=%20#top' });
    const created = await readOrder(await postOrder(gateway, order));
    const response = await fetch(created.payment_link);
    const page = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    for (const shown of ['Test Shop', '€1,249.50', order.order_note, 'shown', 'Pay Test Shop', 'shop.example.com']) {
      expect(page).toContain(shown);
    }
    const back = `https://shop.example.com/back?cart=5&x=%20&order_id=shown&service_order_id=${created.service_order_id}&order_status=UN_PAID#top`;
    expect(page).toContain(`href="${back.replaceAll('&', '&amp;')}"`);
    expect((await callJson(gateway, 'GET', '/order/shown')).body).toMatchObject(created);
  });

  test('200: without a checkout, contains neither the customer’s data nor the token, in any language or format', async () => {
    const token = await newToken(gateway);
    const order = validOrderInput();
    const personal = Object.entries(order).filter(([name, value]) => name.startsWith('customer_') && value !== '');
    const never = [...personal.map(([, value]) => value), order.order_checksum, token];
    const languages = pageLanguages.map((tag) => ({ 'accept-language': tag }));
    for (const headers of [{}, { accept: 'application/json' }, ...languages]) {
      const { text, status } = await getPage(gateway, token, headers);
      expect(status).toBe(200);
      for (const hidden of never) expect(text).not.toContain(hidden);
    }
  });

  test('200: the order’s locale takes precedence over the browser’s language, and the customer’s choice over both', async () => {
    const order = validOrderInput({ order_id: 'locale', customer_locale: 'de-CH' });
    const { order_token } = await readOrder(await postOrder(gateway, order));
    const french = { 'accept-language': 'fr' };
    expect((await getPage(gateway, order_token, french)).text).toContain('<html lang="de"');
    expect((await getPage(gateway, `${order_token}?lang=pl`, french)).text).toContain('<html lang="pl"');
  });

  test('200: the page links to the checkout; without a checkout, it tells the customer to go back to the merchant', async () => {
    const without = await getPage(gateway, await newToken(gateway));
    expect(without.text).toContain(
      'Online payment is not available on this page. Go back to <bdi>Test Shop</bdi> to pay.',
    );
    const token = await newToken(withCheckout);
    const { text } = await getPage(withCheckout, token);
    expect(text).toContain(`href="https://checkout.example.com/pay/${token}?from=link&amp;kind=page"`);
    expect(text).not.toContain('not available');
  });

  test('200: Accept: application/json returns the same data as JSON', async () => {
    const orderId = 'as "json"';
    const created = await createOrder(withCheckout, orderId);
    const { text, headers } = await getPage(withCheckout, created.order_token, { accept: 'application/json' });
    expect(headers.get('content-type')).toContain('application/json');
    expect(JSON.parse(text)).toEqual({
      merchant_name: 'Test Shop',
      mode: 'live',
      order_id: orderId,
      order_amount: 1249.5,
      order_currency: 'EUR',
      order_note: validOrderInput().order_note,
      order_status: 'UN_PAID',
      created_at: created.created_at,
      return_url: `https://shop.example.com/checkout/return?cart=5521&order_id=as%20%22json%22&service_order_id=${created.service_order_id}&order_status=UN_PAID`,
      checkout_url: `https://checkout.example.com/pay/${created.order_token}?from=link&kind=page`,
    });
    const other = await getPage(gateway, await newToken(gateway), { accept: 'application/json' });
    expect(JSON.parse(other.text).checkout_url).toBeNull();
  });

  test('405 for methods other than GET and HEAD; HEAD has no body', async () => {
    const address = `${gateway.url}/payment/${await newToken(gateway)}`;
    const head = await fetch(address, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const posted = await fetch(address, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test.each(['.', ',', ')', '/', ').', '%22', '%3E', '%E2%80%9D', '%20', '%0A'])(
    '303: a link that is followed by %s, as in a mail, leads to the page',
    async (end) => {
      const token = await newToken(withCheckout);
      const address = `${withCheckout.url}/payment/${token}${end}?lang=de`;
      const { status, headers } = await fetch(address, { redirect: 'manual' });
      expect([status, headers.get('location')]).toEqual([303, `/eu/payment/${token}?lang=de`]);
      expect(headers.get('referrer-policy')).toBe('no-referrer');
    },
  );

  test('200: logs the call without the token', async () => {
    const token = await newToken(gateway);
    await getPage(gateway, token, { 'x-request-id': 'page-1' });
    await expect.poll(() => gateway.calls.at(-1)).toMatchObject({ request_id: 'page-1', code: 'ok' });
    expect(JSON.stringify(gateway.calls)).not.toContain(token);
  });
});

describe('GET /payment/{order_token}/qr.svg', () => {
  test('200: the payment link as an SVG that other sites may embed and no cache may store', async () => {
    const created = await createOrder(withCheckout, 'qr');
    const { status, headers, text } = await getPage(withCheckout, `${created.order_token}/qr.svg`);
    expect([status, headers.get('content-type'), text]).toEqual([
      200,
      'image/svg+xml',
      qrCodeSvg(created.payment_link),
    ]);
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin');
    expect([headers.get('cache-control'), headers.get('x-robots-tag')]).toEqual(['no-store', 'noindex, nofollow']);
  });

  test('404: the page for an unknown link; 405 for other methods', async () => {
    for (const token of [unknownToken, 'x', '%ff', '%2F']) {
      const { status, text } = await getPage(gateway, `${token}/qr.svg`);
      expect([status, text]).toEqual([404, (await getPage(gateway, unknownToken)).text]);
    }
    const address = `${gateway.url}/payment/${await newToken(gateway)}/qr.svg`;
    const posted = await fetch(address, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});

describe('GET /payment/{order_token} of an unknown link', () => {
  test('404: the page is the same whether or not the token is well-formed or can be decoded', async () => {
    const browser = { accept: 'text/html', 'accept-language': 'de', 'x-request-id': 'same' };
    for (const served of [gateway, withCheckout]) {
      const invalid = ['x', '', '%00', '%ff', '%zz', '<script>', '%F0%9F%98%80', 'x'.repeat(2_000)];
      const tokens = [unknownToken, ...['A', '/', '.', '%'].map((end) => unknownToken + end), ...invalid];
      const [first, ...others] = await Promise.all(tokens.map((token) => getPage(served, token, browser)));
      expect([first?.status, first?.text]).toEqual([404, expect.stringContaining(pageTexts.de.unknownTitle)]);
      for (const { status, text, headers } of others) {
        expect([status, text]).toEqual([404, first?.text]);
        expect(withoutDate(headers)).toEqual(withoutDate(first?.headers));
      }
    }
    expect(gateway.errors).toEqual([]);
  });

  test.each([unknownToken, '%zz'])(
    '404: for %j, returns a problem document if the request accepts application/json',
    async (token) => {
      const { status, headers, text } = await getPage(gateway, token, { accept: 'application/json' });
      expect([status, headers.get('content-type')]).toEqual([404, expect.stringContaining('application/problem+json')]);
      expect(JSON.parse(text)).toMatchObject({ code: 'not_found', request_id: headers.get('x-request-id') });
    },
  );
});

describe('GET /payment/{order_token}: headers and outages', () => {
  test('has headers that forbid caching, referrers, indexing, framing and foreign scripts', async () => {
    const token = await newToken(gateway);
    const responses = await Promise.all([
      getPage(gateway, token),
      getPage(gateway, token, { accept: 'application/json' }),
      getPage(gateway, unknownToken),
      getPage(gateway, unknownToken, { accept: 'application/json' }),
    ]);
    for (const { headers } of responses) {
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-robots-tag')).toBe('noindex, nofollow');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('vary')).toBe('Accept, Accept-Language');
      expect(headers.get('x-request-id')).toMatch(/^[0-9A-Za-z]{16}$/);
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[\w+/]{43}=';( script-src 'sha256-[\w+/]{43}='; connect-src 'self'; img-src 'self' data:;)? base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      );
      expect(headers.get('set-cookie')).toBeNull();
    }
  });

  test('with CHECKOUT_METHOD=post, the form may lead to the checkout, which may redirect to https', async () => {
    const posting = await runGateway({ checkoutUrl: 'http://127.0.0.1:8081/{order_token}', checkoutMethod: 'post' });
    const { headers, text } = await getPage(posting, await newToken(posting));
    expect(text).toContain('<form method="post" action="http://127.0.0.1:8081/');
    expect(headers.get('content-security-policy')).toContain("form-action 'self' http://127.0.0.1:8081 https:;");
  });

  test('503 while the database is unavailable: a page that says to try again', async () => {
    const server = await startTestServer();
    const withoutDatabase = await runGateway({ server });
    const token = await newToken(withoutDatabase);
    await server.stop();
    const { status, text, headers } = await getPage(withoutDatabase, token, { 'accept-language': 'de' });
    expect([status, headers.get('cache-control')]).toEqual([503, 'no-store']);
    expect(text).toContain(pageTexts.de.troubleTitle);
    expect(text).toContain(pageTexts.de.troubleText);
    const json = await getPage(withoutDatabase, token, { accept: 'application/json' });
    expect([json.status, JSON.parse(json.text)]).toMatchObject([503, { code: 'unavailable' }]);
  });
});
