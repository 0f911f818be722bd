import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { MerchantMode } from '@order-gateway/domain/accounts';
import type { AmountHundredths } from '@order-gateway/domain/money';
import type { OrderStatus } from '@order-gateway/domain/orders';
import { localAmount, type PageLanguage, pageLanguages, pageTexts } from '@order-gateway/pages/localization';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { describeInBrowser, phone, showIn } from '../../../../../tools/browser.ts';
import type { OrderResponse } from '../../../src/operations/orders.ts';
import { giveSigningSecret, type RunningGateway, useGateway } from '../running-gateway.ts';
import { callJson, createOrder, pressPay } from '../send-order.ts';

/** Markup, script, entities, direction overrides, emoji and combining marks, with padding to 1,000 code points. */
const hostileStart = `<script>document.title='run'</script><img src=x onerror="document.title='run'">"'>&lt;{{7*7}}\${7*7}
\u202eright to left\u202c \u2067\u202e never closed 👩🏽‍🚀🏴󠁧󠁢󠁳󠁣󠁴󠁿 Z\u0337\u031b\u0339\u033a\u0308\u0301a\u0336l\u0334g\u0338o שלום مرحبا `;
export const hostileNote = hostileStart + 'x'.repeat(1_000 - [...hostileStart].length);

/** The amount of `validOrderInput`. */
const sampleAmount = 124_950n as AmountHundredths;

/**
 * The languages in which tests visit every page: the first one, one from right to left, one with long words, and two
 * other scripts. `test:slow` visits the pages in all languages.
 */
export const visitedLanguages: readonly PageLanguage[] =
  process.env.MODE === 'slow' ? pageLanguages : ['en', 'ar', 'de', 'hi', 'ja'];

/**
 * Whether axe checks pages in this language. Two languages are enough: a page has the same elements and colours in
 * every language, but Arabic mirrors them.
 */
export const isCheckedByAxe = (language: PageLanguage) => language === 'en' || language === 'ar';

interface View {
  readonly language?: PageLanguage;
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly colorScheme?: 'light' | 'dark';
  readonly hasScript?: boolean;
  /** Whether the test controls the page's clock. */
  readonly hasClock?: boolean;
  readonly timezone?: string;
}

/** Like {@link describeInBrowser}, for tests of pages that customers and visitors see. */
export function describePages(title: string, describeTests: (pages: Pages) => void): Promise<void> {
  return describeInBrowser(title, (browser) => describeTests(usePages(browser)));
}

export type Pages = ReturnType<typeof usePages>;

/**
 * Runs the gateways and the shop for all tests of a `describe`. Returns them with the functions that create orders and
 * visit pages.
 */
function usePages(browser: Browser) {
  const gateway = useGateway({ checkoutUrl: 'https://checkout.example.com/{order_token}', hasDemo: true });
  /** A gateway with a public base URL, so that phones could open its pages. */
  const publicGateway = useGateway({ baseUrl: 'https://pay.gateway.test', mode: 'test' });
  const shop = {} as Shop;
  let testShop: Pick<RunningGateway, 'url' | 'credentials'>;
  let signingSecret: string;
  /** One page for most visits, because each new page starts a process. */
  let sharedPage: Page;
  beforeAll(async () => {
    Object.assign(shop, await openShop());
    sharedPage = await browser.newPage();
    testShop = await gateway.newMerchant('Test Shop', 'test');
    signingSecret = await giveSigningSecret(gateway.databaseUrl, testShop.credentials.clientId);
  });
  afterAll(() => shop.close?.());

  const newLink = (overrides: Record<string, unknown> = {}, mode: MerchantMode = 'live') =>
    createOrder(mode === 'live' ? gateway : testShop, `browser-${Math.random()}`, overrides);

  /** Creates a test order whose customer returns to the local shop. */
  const newTestLink = (overrides: Record<string, unknown> = {}) =>
    newLink({ return_url: `${shop.url}/thanks?cart=5`, ...overrides }, 'test');

  /** Creates a test order on the public gateway. `address` is the local address of its payment link. */
  const newPublicLink = async (overrides: Record<string, unknown> = {}) => {
    const { payment_link } = await createOrder(publicGateway, `browser-${Math.random()}`, overrides);
    return { payment_link, address: publicGateway.url + new URL(payment_link).pathname };
  };

  /** Functions that move an unpaid test order to each status. */
  const moveTo: Record<OrderStatus, (order: OrderResponse) => Promise<unknown>> = {
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

  const amountText = (language: PageLanguage) => localAmount(sampleAmount, 'EUR', language);

  /** The text of the Pay button. */
  const payText = (language: PageLanguage) => pageTexts[language].pay.replace('{amount}', amountText(language));

  /**
   * Opens an address, and calls `look` with the page. Returns the URLs that the page loads, except its own and its QR
   * code. Fails if the page reports errors.
   */
  const visit = async (address: string, view: View, look: (page: Page) => Promise<void>) => {
    const {
      language = 'en',
      viewport = phone,
      colorScheme = 'light',
      hasScript = true,
      hasClock = false,
      timezone,
    } = view;
    const isShared = hasScript && !hasClock && timezone === undefined;
    const settings = { javaScriptEnabled: hasScript, ...(timezone !== undefined && { timezoneId: timezone }) };
    const page = isShared ? sharedPage : await (await browser.newContext(settings)).newPage();
    // Turns off Playwright's own time limit, so that only the test's limit applies.
    page.setDefaultTimeout(0);
    if (hasClock) {
      await page.clock.install({ time: 0 });
      await page.clock.pauseAt(Date.now());
    }
    try {
      // The previous visit's page polls for changes, and on a slow machine it may still do so when this visit begins.
      await page.goto('about:blank');
      await page.setExtraHTTPHeaders({ 'accept-language': language });
      await showIn(page, { viewport, colorScheme });
      const reports: string[] = [];
      const requests: string[] = [];
      page.on('console', (message) => message.type() === 'info' || reports.push(message.text()));
      page.on('pageerror', (error) => reports.push(error.message));
      page.on('dialog', (dialog) => reports.push(dialog.message()));
      page.on('request', (request) => requests.push(request.url()));
      const statuses: number[] = [];
      page.on('response', (response) => statuses.push(response.status()));
      await page.goto(address);
      await look(page);
      // The browser reports the error status of a document, which is not an error of the page.
      const isStatus = (text: string) =>
        statuses.some((status) => status >= 400 && text.includes(`status of ${status}`));
      expect(reports.filter((text) => !isStatus(text))).toEqual([]);
      const loaded = requests.filter((url) => !url.endsWith('/qr.svg'));
      expect(loaded[0]).toBe(address);
      // The page polls for changes at its own address.
      return loaded.filter((url) => url !== address);
    } finally {
      page.removeAllListeners();
      if (page !== sharedPage) await page.context().close();
    }
  };

  return {
    gateway,
    shop,
    newLink,
    newTestLink,
    newPublicLink,
    moveTo,
    findOrder,
    amountText,
    payText,
    visit,
    signingSecret: () => signingSecret,
  };
}

/** A merchant's local website, reachable under two origins. */
interface Shop {
  readonly url: string;
  readonly otherUrl: string;
  /** Returns the Referer header of the latest request to an address. */
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
