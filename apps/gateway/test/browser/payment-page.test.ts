import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import axe from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leftOut } from '../../../../tools/left-out.ts';
import { type PageLanguage, pageLanguages, pageTexts } from '../../src/pages/localization.ts';
import { answerOf, postOrder, type RunningGateway, runGateway } from '../running-gateway.ts';
import { openBrowser } from './open-browser.ts';

const opened = await openBrowser();

/** Markup, script, entities, direction overrides, emoji and combining marks: 1,000 code points in total. */
const hostileStart = `<script>document.title='run'</script><img src=x onerror="document.title='run'">"'>&lt;{{7*7}}\${7*7}
\u202eright to left\u202c \u2067\u202e never closed 👩🏽‍🚀🏴󠁧󠁢󠁳󠁣󠁴󠁿 Z\u0337\u031b\u0339\u033a\u0308\u0301a\u0336l\u0334g\u0338o שלום مرحبا `;
const hostileNote = hostileStart + 'x'.repeat(1_000 - [...hostileStart].length);

const phone = { width: 320, height: 640 };
const desktop = { width: 1280, height: 800 };

/** Each size and each colour scheme once. They do not depend on each other. */
const views = [
  { viewport: phone, colorScheme: 'light' },
  { viewport: desktop, colorScheme: 'dark' },
] as const;

interface View {
  readonly language?: PageLanguage;
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly colorScheme?: 'light' | 'dark';
  readonly javaScriptEnabled?: boolean;
}

if (opened.kind === 'none') {
  test.skipIf(leftOut('the pages in a real browser', opened.reason))('the pages in a real browser');
} else {
  describe(`GET /payment/{order_token} in ${opened.name}`, { timeout: 60_000 }, () => describePages(opened.browser));
}

function describePages(browser: Browser): void {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await runGateway({ checkoutUrl: 'https://checkout.example.com/{order_token}' });
  });
  afterAll(() => Promise.all([gateway?.close(), browser.close()]));

  const newLink = async (overrides: Record<string, unknown> = {}) => {
    const order = validOrderInput({ order_id: `browser-${Math.random()}`, ...overrides });
    return answerOf(await postOrder(gateway, order));
  };

  /** Opens an address and looks at the page. Returns the requests of the page; fails if it reports anything. */
  const visit = async (address: string, view: View, look: (page: Page, context: BrowserContext) => Promise<void>) => {
    const { language = 'en', viewport = phone, ...rest } = view;
    const extraHTTPHeaders = { 'accept-language': language };
    const context = await browser.newContext({ viewport, extraHTTPHeaders, ...rest });
    try {
      const page = await context.newPage();
      const reports: string[] = [];
      const requests: string[] = [];
      page.on('console', (message) => reports.push(message.text()));
      page.on('pageerror', (error) => reports.push(error.message));
      page.on('dialog', (dialog) => reports.push(dialog.message()));
      page.on('request', (request) => requests.push(request.url()));
      const response = await page.goto(address);
      await look(page, context);
      // The browser itself reports a document with status 404.
      expect(reports.filter((text) => response?.status() !== 404 || !text.includes('404'))).toEqual([]);
      expect(requests[0]).toBe(address);
      return requests.slice(1);
    } finally {
      await context.close();
    }
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
      for (const view of views) {
        const loaded = await visit(payment_link, { language, ...view }, async (page) => {
          expect(await page.getAttribute('html', 'lang')).toBe(language);
          expect(await page.getAttribute('html', 'dir')).toBe(language === 'ar' ? 'rtl' : 'ltr');
          for (const text of [texts.payTo, 'Test Shop', texts.unpaid, texts.pay, texts.back, 'shop.example.com']) {
            expect(await page.getByText(text, { exact: true }).first().isVisible(), text).toBe(true);
          }
          await expectFits(page);
          await expectAccessible(page);
        });
        expect(loaded).toEqual([]);
      }
    },
  );

  test.each(pageLanguages)('404 in %s: fits and is accessible', async (language) => {
    const address = `${gateway.url}/payment/unknown`;
    await visit(address, { language }, async (page) => {
      expect(await page.textContent('h1')).toBe(pageTexts[language].unknownTitle);
      await expectFits(page);
      await expectAccessible(page);
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
    await visit(payment_link, { javaScriptEnabled: false }, async (page, context) => {
      await context.route(/example\.com/, async (route) => {
        const headers = await route.request().allHeaders();
        seen.push({ url: route.request().url(), referer: headers.referer });
        await route.fulfill({ status: 200, contentType: 'text/plain', body: 'there' });
      });
      await page.getByText(pageTexts.en.back).click();
      await page.waitForURL(/shop\.example\.com/);
      await page.goBack();
      await page.getByText(pageTexts.en.pay, { exact: true }).click();
      await page.waitForURL(/checkout\.example\.com/);
    });
    const back = `https://shop.example.com/back?cart=5&order_id=back&service_order_id=${service_order_id}&order_status=UN_PAID`;
    expect(seen.map(({ url }) => url.split('#')[0])).toEqual([back, `https://checkout.example.com/${order_token}`]);
    expect(seen.map(({ referer }) => referer)).toEqual([undefined, undefined]);
  });

  test('works with the keyboard alone and shows the focus', async () => {
    const { payment_link } = await newLink();
    await visit(payment_link, { viewport: desktop }, async (page) => {
      for (const text of [pageTexts.en.pay, pageTexts.en.back]) {
        await page.keyboard.press('Tab');
        expect(await page.evaluate('document.activeElement.textContent')).toBe(text);
        expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
      }
    });
  });

  test.each(['/', '/docs', '/docs/errors'])('GET %s: fits, is accessible and loads nothing', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const loaded = await visit(gateway.url + path, { colorScheme }, async (page) => {
        await expectFits(page);
        await expectAccessible(page);
      });
      expect(loaded).toEqual([]);
    }
  });
}
