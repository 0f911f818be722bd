import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifyReturn } from '@gateway/client';
import type { MerchantMode } from '@gateway/domain/merchant';
import type { AmountHundredths } from '@gateway/domain/money';
import { type OrderStatus, orderStatuses } from '@gateway/domain/order';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { runQuery } from '@gateway/postgres/testing/run-query';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leftOut } from '../../../../tools/left-out.ts';
import type { OrderResponse } from '../../src/orders/order-response.ts';
import { localAmount, type PageLanguage, pageLanguages, pageTexts } from '../../src/pages/localization.ts';
import { giveSigningSecret, type RunningGateway, useGateway } from '../running-gateway.ts';
import { callJson, createOrder, pressPay } from '../send-order.ts';
import { openBrowser } from './open-browser.ts';

const opened = await openBrowser();

/** Markup, script, entities, direction overrides, emoji and combining marks: 1,000 code points in total. */
const hostileStart = `<script>document.title='run'</script><img src=x onerror="document.title='run'">"'>&lt;{{7*7}}\${7*7}
\u202eright to left\u202c \u2067\u202e never closed 👩🏽‍🚀🏴󠁧󠁢󠁳󠁣󠁴󠁿 Z\u0337\u031b\u0339\u033a\u0308\u0301a\u0336l\u0334g\u0338o שלום مرحبا `;
const hostileNote = hostileStart + 'x'.repeat(1_000 - [...hostileStart].length);

/** The amount of `validOrderInput`. */
const sampleAmount = 124_950n as AmountHundredths;

const phone = { width: 320, height: 640 };
const desktop = { width: 1280, height: 800 };

/** Each size and each colour scheme once. They do not depend on each other. */
const views = [
  { viewport: phone, colorScheme: 'light' },
  { viewport: desktop, colorScheme: 'dark' },
] as const;

/** The elements and colours of a page are the same in all languages; in Arabic they are mirrored. */
const isLookedAtByAxe = (language: PageLanguage) => language === 'en' || language === 'ar';

interface View {
  readonly language?: PageLanguage;
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly colorScheme?: 'light' | 'dark';
  readonly hasScript?: boolean;
}

if (opened.kind === 'none') {
  test.skipIf(leftOut('the pages in a real browser', opened.reason))('the pages in a real browser');
} else {
  describe(`GET /payment/{order_token} in ${opened.name}`, { timeout: 60_000 }, () => describePages(opened.browser));
}

function describePages(browser: Browser): void {
  const gateway = useGateway({ checkoutUrl: 'https://checkout.example.com/{order_token}' });
  let testShop: Pick<RunningGateway, 'url' | 'credentials'>;
  let signingSecret: string;
  let shop: Shop;
  /** One page for all visits: each new one is another process. */
  let shared: Page;
  beforeAll(async () => {
    shop = await openShop();
    shared = await browser.newPage();
    testShop = { url: gateway.url, credentials: await createMerchant(gateway.databaseUrl, 'Test Shop', 'test') };
    signingSecret = await giveSigningSecret(gateway.databaseUrl, testShop.credentials.clientId);
  });
  afterAll(() => Promise.all([shop?.close(), browser.close()]));

  const newLink = (overrides: Record<string, unknown> = {}, mode: MerchantMode = 'live') =>
    createOrder(mode === 'live' ? gateway : testShop, `browser-${Math.random()}`, overrides);

  /** The link of a test order whose customer returns to the local shop. */
  const newTestLink = (overrides: Record<string, unknown> = {}) =>
    newLink({ return_url: `${shop.url}/thanks?cart=5`, ...overrides }, 'test');

  /** What the merchant and time do with a test order. */
  const closings: Record<OrderStatus, (order: OrderResponse) => Promise<unknown>> = {
    UN_PAID: async () => {},
    PAID: ({ payment_link }) => pressPay(payment_link),
    EXPIRED: ({ order_id }) =>
      runQuery(
        gateway.databaseUrl,
        `update orders set order_expires_at = now() - interval '1 s' where order_id = '${order_id}'`,
      ),
    CANCELLED: ({ order_id }) => callJson(testShop, 'POST', `/order/${order_id}/cancel`),
  };

  const findOrder = async (orderId: string) => (await callJson(testShop, 'GET', `/order/${orderId}`)).body;

  const payText = (language: PageLanguage) =>
    pageTexts[language].pay.replace('{amount}', localAmount(sampleAmount, 'EUR', language));

  /** Opens an address and looks at the page. Returns the requests of the page; fails if it reports anything. */
  const visit = async (address: string, view: View, look: (page: Page) => Promise<void>) => {
    const { language = 'en', viewport = phone, colorScheme = 'light', hasScript = true } = view;
    const page = hasScript ? shared : await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    try {
      await page.setExtraHTTPHeaders({ 'accept-language': language });
      await showIn(page, { viewport, colorScheme });
      const reports: string[] = [];
      const requests: string[] = [];
      page.on('console', (message) => reports.push(message.text()));
      page.on('pageerror', (error) => reports.push(error.message));
      page.on('dialog', (dialog) => reports.push(dialog.message()));
      page.on('request', (request) => requests.push(request.url()));
      const statuses: number[] = [];
      page.on('response', (response) => statuses.push(response.status()));
      await page.goto(address);
      await look(page);
      // The browser itself reports a document with the status of an error.
      const isOwn = (text: string) => statuses.some((status) => status >= 400 && text.includes(`status of ${status}`));
      expect(reports.filter((text) => !isOwn(text))).toEqual([]);
      expect(requests[0]).toBe(address);
      return requests.slice(1);
    } finally {
      page.removeAllListeners();
      if (page !== shared) await page.context().close();
    }
  };

  const showIn = async (page: Page, { viewport, colorScheme }: Required<Pick<View, 'viewport' | 'colorScheme'>>) => {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
  };

  const expectAccessible = async (page: Page) => {
    await page.evaluate(axe.source);
    const found = await page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))',
    );
    expect(found).toEqual([]);
  };

  const expectFits = async (page: Page) => {
    const widths = await page.evaluate('[document.documentElement.scrollWidth, document.documentElement.clientWidth]');
    const [scrolled, shown] = Array.isArray(widths) ? widths : [];
    expect(scrolled).toBe(shown);
    const outside = await page.evaluate(`[...document.querySelectorAll('main *')].filter((element) => {
      const { left, right } = element.getBoundingClientRect();
      return left < 0 || right > document.documentElement.clientWidth;
    }).map((element) => element.outerHTML.slice(0, 80))`);
    expect(outside).toEqual([]);
  };

  test.each(pageLanguages)(
    '200 in %s: complete, fits and is accessible, small and large, light and dark',
    async (language) => {
      const texts = pageTexts[language];
      const { payment_link } = await newLink({ order_note: hostileNote });
      const loaded = await visit(payment_link, { language }, async (page) => {
        expect(await page.getAttribute('html', 'lang')).toBe(language);
        expect(await page.getAttribute('html', 'dir')).toBe(language === 'ar' ? 'rtl' : 'ltr');
        for (const view of views) {
          await showIn(page, view);
          const amount = payText(language);
          for (const text of [texts.payTo, 'Test Shop', texts.unpaid, amount, texts.back, 'shop.example.com']) {
            expect(await page.getByText(text, { exact: true }).first().isVisible(), text).toBe(true);
          }
          await expectFits(page);
          if (isLookedAtByAxe(language)) await expectAccessible(page);
        }
      });
      expect(loaded).toEqual([]);
    },
  );

  test.each(pageLanguages)(
    'test orders in %s: complete and fit in every state, and are accessible',
    async (language) => {
      const texts = pageTexts[language];
      const badges = { UN_PAID: texts.unpaid, PAID: texts.paid, EXPIRED: texts.expired, CANCELLED: texts.cancelled };
      for (const [index, status] of orderStatuses.entries()) {
        const order = await newTestLink({ order_note: hostileNote, order_expires_at: tomorrow() });
        await closings[status](order);
        // The states differ in their colours, whatever the language.
        for (const view of language === 'en' ? views : views.slice(index % 2, (index % 2) + 1)) {
          await visit(order.payment_link, { language, ...view }, async (page) => {
            expect(await page.textContent('.test')).toBe(texts.testMode);
            expect(await page.textContent('.status')).toBe(badges[status]);
            const buttons = status === 'UN_PAID' ? [payText(language), texts.decline] : [];
            expect(await page.getByRole('button').allTextContents()).toEqual(buttons);
            expect(await page.locator('time').count()).toBe(2);
            const lookAtLayout = async () => {
              await expectFits(page);
              if (isLookedAtByAxe(language)) await expectAccessible(page);
            };
            await lookAtLayout();
            if (status !== 'UN_PAID') return;
            await page.getByText(texts.decline).click();
            expect(await page.textContent('[role=status]')).toBe(texts.declined);
            await lookAtLayout();
          });
        }
      }
    },
  );

  describe('the buttons of a test order', () => {
    const view = { hasScript: false };
    const pay = (page: Page) => page.getByRole('button', { name: payText('en') });

    test('Pay leads to the shop, and the order is paid once', async () => {
      const { payment_link, order_id, service_order_id } = await newTestLink();
      await visit(payment_link, view, async (page) => {
        await pay(page).click();
        await page.waitForURL(`${shop.url}/**`);
        const { pathname, searchParams } = new URL(page.url());
        expect([pathname, Object.fromEntries(searchParams)]).toMatchObject([
          '/thanks',
          { cart: '5', order_id, service_order_id: String(service_order_id), order_status: 'PAID' },
        ]);
        expect(await verifyReturn(page.url(), signingSecret)).toMatchObject({ order_id, order_status: 'PAID' });
        expect(await page.textContent('h1')).toBe('Thank you');
        expect(shop.refererOf(page.url())).toBeUndefined();
        // Back: the page is not cached, so it shows the order as it is.
        await page.goBack();
        expect(await page.textContent('.status')).toBe(pageTexts.en.paid);
        expect(await page.getByRole('button').count()).toBe(0);
      });
      expect(await findOrder(order_id)).toMatchObject({ order_status: 'PAID' });
    });

    test('Pay leads to a shop that redirects to another site', async () => {
      const { payment_link } = await newTestLink({ return_url: `${shop.url}/moved` });
      await visit(payment_link, view, async (page) => {
        await pay(page).click();
        await page.waitForURL(`${shop.otherUrl}/thanks`);
        expect(await page.textContent('h1')).toBe('Thank you');
      });
    });

    test('a double click on Pay, and Pay in a second window, pay once and lead to the shop', async () => {
      const { payment_link, order_id } = await newTestLink();
      await visit(payment_link, view, async (page) => {
        const second = await page.context().newPage();
        await second.goto(payment_link);
        await pay(page).dblclick();
        await page.waitForURL(/order_status=PAID/);
        const { payment_id } = await findOrder(order_id);
        await pay(second).click();
        await second.waitForURL(/order_status=PAID/);
        expect(await findOrder(order_id)).toMatchObject({ payment_id });
      });
      const events = await runQuery(gateway.databaseUrl, `select type from events where order_id = '${order_id}'`);
      expect(events).toEqual([{ type: 'order.paid' }]);
    });

    test('Decline shows the page again with a notice; then Pay works', async () => {
      const { payment_link, order_id } = await newTestLink();
      await visit(payment_link, view, async (page) => {
        await page.getByRole('button', { name: pageTexts.en.decline }).click();
        expect(await page.textContent('[role=status]')).toBe(pageTexts.en.declined);
        expect(await findOrder(order_id)).toMatchObject({ order_status: 'UN_PAID' });
        await page.reload();
        expect(await page.textContent('[role=status]')).toBe(pageTexts.en.declined);
        await pay(page).click();
        await page.waitForURL(/order_status=PAID/);
      });
    });

    test.each(['EXPIRED', 'CANCELLED'] as const)(
      'Pay on a page that was open while the order became %s',
      async (status) => {
        const order = await newTestLink();
        const texts = { EXPIRED: pageTexts.en.expired, CANCELLED: pageTexts.en.cancelled };
        await visit(order.payment_link, view, async (page) => {
          await closings[status](order);
          await pay(page).click();
          await page.waitForURL(/simulate/);
          expect(await page.textContent('.status')).toBe(texts[status]);
          expect(await page.getByRole('button').count()).toBe(0);
        });
        expect(await findOrder(order.order_id)).toMatchObject({ order_status: status });
      },
    );

    test('a form on another site is rejected', async () => {
      const { payment_link, order_id } = await newTestLink();
      await visit(`${shop.url}/form?to=${payment_link}/simulate`, view, async (page) => {
        await page.getByRole('button').click();
        await page.waitForURL(/simulate/);
        expect(await page.textContent('h1')).toBe(pageTexts.en.rejectedTitle);
        await expectFits(page);
      });
      expect(await findOrder(order_id)).toMatchObject({ order_status: 'UN_PAID' });
    });
  });

  test('the form is sent with its own origin, as over http no browser sends Sec-Fetch-Site to a local network', async () => {
    const { payment_link } = await newTestLink();
    await visit(payment_link, {}, async (page) => {
      const [request] = await Promise.all([
        page.waitForRequest((sent) => sent.method() === 'POST'),
        page.getByText(payText('en'), { exact: true }).click(),
      ]);
      expect(await request.headerValue('origin')).toBe(new URL(gateway.baseUrl).origin);
      await page.waitForURL(/order_status=PAID/);
    });
  });

  test.each(pageLanguages)('404 in %s: fits and is accessible', async (language) => {
    const address = `${gateway.url}/payment/unknown`;
    await visit(address, { language }, async (page) => {
      expect(await page.textContent('h1')).toBe(pageTexts[language].unknownTitle);
      expect(await page.getAttribute('html', 'lang')).toBe(language);
      await expectFits(page);
      if (isLookedAtByAxe(language)) await expectAccessible(page);
    });
  });

  test('shows markup in a note as text: nothing runs, nothing breaks out', async () => {
    const { payment_link } = await newLink({ order_note: hostileNote, order_id: `\u202e${'<b>'.repeat(40)}` });
    const loaded = await visit(payment_link, {}, async (page) => {
      expect(await page.textContent('.note')).toBe(hostileNote);
      expect(await page.title()).not.toBe('run');
      expect(await page.evaluate("document.querySelectorAll('script, img, main b').length")).toBe(0);
      const isolation = await page.evaluate(
        "[...document.querySelectorAll('bdi')].map((bdi) => getComputedStyle(bdi).unicodeBidi)",
      );
      expect(new Set(Array.isArray(isolation) ? isolation : [])).toEqual(new Set(['isolate']));
      await expectFits(page);
    });
    expect(loaded).toEqual([]);
  });

  test('fits with the largest amount and the longest names in every language', async () => {
    for (const language of pageLanguages) {
      const { payment_link } = await newLink({
        ...{ order_amount: 9_999_999_999_999.99, order_currency: language === 'ar' ? 'KWD' : 'INR' },
        ...{
          order_id: language + 'W'.repeat(126),
          return_url: `https://${'w'.repeat(60)}.${'w'.repeat(60)}.example.com/`,
        },
      });
      await visit(payment_link, { language }, expectFits);
    }
  });

  test('works without JavaScript, and its links never send the token to the merchant', async () => {
    const returnUrl = 'https://shop.example.com/back?cart=5#top';
    const { payment_link, order_token, service_order_id } = await newLink({ order_id: 'back', return_url: returnUrl });
    const seen: { url: string; referer: string | undefined }[] = [];
    await visit(payment_link, { hasScript: false }, async (page) => {
      await page.route(/example\.com/, async (route) => {
        const headers = await route.request().allHeaders();
        seen.push({ url: route.request().url(), referer: headers.referer });
        await route.fulfill({ status: 200, contentType: 'text/plain', body: 'there' });
      });
      await page.getByText(pageTexts.en.back).click();
      await page.waitForURL(/shop\.example\.com/);
      await page.goBack();
      await page.getByText(payText('en'), { exact: true }).click();
      await page.waitForURL(/checkout\.example\.com/);
    });
    const back = `https://shop.example.com/back?cart=5&order_id=back&service_order_id=${service_order_id}&order_status=UN_PAID`;
    expect(seen.map(({ url }) => url.split('#')[0])).toEqual([back, `https://checkout.example.com/${order_token}`]);
    expect(seen.map(({ referer }) => referer)).toEqual([undefined, undefined]);
  });

  test('works with the keyboard alone and shows the focus', async () => {
    const { payment_link } = await newLink();
    await visit(payment_link, { viewport: desktop }, async (page) => {
      for (const text of [payText('en'), pageTexts.en.back]) {
        await page.keyboard.press('Tab');
        expect(await page.evaluate('document.activeElement.textContent')).toBe(text);
        expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
      }
    });
  });

  test.each(['/', '/docs', '/docs/errors'])('GET %s: fits, is accessible and loads nothing', async (path) => {
    const loaded = await visit(gateway.url + path, {}, async (page) => {
      for (const view of views) {
        await showIn(page, view);
        await expectFits(page);
        await expectAccessible(page);
      }
    });
    expect(loaded).toEqual([]);
  });
}

function tomorrow(): string {
  return new Date(Date.now() + 86_400_000).toISOString();
}

/** A merchant's site on this machine, under two origins. */
interface Shop {
  readonly url: string;
  readonly otherUrl: string;
  /** The Referer of the latest request to an address. */
  refererOf(url: string): string | undefined;
  close(): Promise<void>;
}

async function openShop(): Promise<Shop> {
  const referers = new Map<string, string | undefined>();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', url);
    referers.set(`${url}${request.url}`, request.headers.referer);
    const form = `<form method="post" action="${searchParams.get('to')}"><button name="outcome" value="pay">Win</button></form>`;
    if (pathname === '/moved') response.writeHead(302, { location: `${otherUrl}/thanks` }).end();
    else {
      const body = pathname === '/form' ? form : '<h1>Thank you</h1>';
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<!doctype html><html lang="en"><link rel="icon" href="data:,">${body}`);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const otherUrl = `http://localhost:${port}`;
  return {
    url,
    otherUrl,
    refererOf: (address) => referers.get(address),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
