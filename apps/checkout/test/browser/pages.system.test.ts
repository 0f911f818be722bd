import { type PageLanguage, pageLanguages } from '@order-gateway/pages/localization';
import { eq } from 'drizzle-orm';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeInBrowser, expectAccessible, expectFits, showIn, views } from '../../../../tools/browser.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { type CheckoutTexts, textsOf } from '../../src/html/layout.ts';
import { attempts } from '../../src/store/schema.ts';
import { testIban } from '../../testing/statements.ts';
import { createStripeStandIn } from '../../testing/stripe-stand-in.ts';
import { useWorld } from '../helpers/world.ts';

const languages: readonly PageLanguage[] = process.env.MODE === 'slow' ? pageLanguages : ['en', 'ar', 'de'];

const isCheckedByAxe = (language: PageLanguage) => language === 'en' || language === 'ar';

/** A PNG of one pixel. */
const logo = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

await describeInBrowser("the checkout's pages", (browser) => {
  const stripe = createStripeStandIn({ key: 'rk_live_standIn' });
  const live = useWorld('live', stripe.send);
  const testing = useWorld('test');
  let page: Page;
  const reports: string[] = [];
  beforeAll(async () => {
    page = await browser.newPage();
    page.setDefaultTimeout(0);
    page.on('console', (message) => reports.push(message.text()));
    page.on('pageerror', (error) => reports.push(error.message));
    const links = { support_email: 'help@shop.example', terms_url: 'https://shop.example/', logo, color: '#ffff00' };
    // On a busy machine, checking the logo can take longer than the deadline of a call.
    await vi.waitUntil(async () => (await live.call('PATCH', '/brand', links)).ok, waitLimitMs);
    await live.connect('stripe', 'acct_stand_in', stripe.secrets);
    await live.connect('transfer', testIban, { IBAN: testIban, 'Account holder': 'Käse & Wein e. K.' });
  });
  afterAll(() => page.close());

  const order = { order_amount: 25.5, order_currency: 'EUR', return_url: 'https://shop.example/' };

  /** Creates an order with an open session. Returns the path of its choice and the attempt. */
  async function open(world: typeof live, orderId: string, method = '') {
    const orderToken = await world.createOrder(orderId, order);
    const [id = ''] = /[^"]+\.card/.exec(await (await world.get(`/pay/${orderToken}`)).text()) ?? [];
    await world.post(`/pay/${orderToken}`, { method: method || id });
    return { path: `/pay/${orderToken}`, attemptId: (await world.store.newest(orderToken))?.attemptId ?? '' };
  }

  /** The pages, each with the name of a text that it shows. */
  const pages = {
    async 'the choice of a method'() {
      return [live, `/pay/${await live.createOrder('choice', order)}`, 'choose'];
    },
    async 'an open payment'() {
      const { path } = await open(live, 'open');
      return [live, path, 'continue'];
    },
    async 'the details of a transfer'() {
      const orderToken = await live.createOrder('transfer', order);
      const html = await (await live.get(`/pay/${orderToken}`)).text();
      const [method = ''] = /[^"]+\.transfer/.exec(html) ?? [];
      await live.post(`/pay/${orderToken}`, { method });
      return [live, `/transfer/${orderToken}`, 'transfer'];
    },
    async 'a test payment'() {
      const { attemptId } = await open(testing, 'test-payment', 'demo.demo');
      return [testing, `/demo/${attemptId}`, 'succeed'];
    },
    async 'a declined payment'() {
      const { path, attemptId } = await open(testing, 'declined', 'demo.demo');
      await testing.post(`/demo/${attemptId}`, { outcome: 'decline' });
      await testing.get(`/back/${attemptId}`);
      return [testing, path, 'declined'];
    },
    async 'an unknown link'() {
      return [testing, `/pay/${'A'.repeat(32)}`, 'unknownTitle'];
    },
  } as const satisfies Record<string, () => Promise<readonly [typeof live, string, keyof CheckoutTexts]>>;

  test.each(Object.entries(pages))(
    '%s fits, is accessible and reports nothing, in each language',
    async (_, prepare) => {
      const [world, path, text] = await prepare();
      for (const language of languages) {
        reports.length = 0;
        const response = await page.goto(`${world.baseUrl}${path}?lang=${language}`);
        expect(await page.textContent('main')).toContain(textsOf(language)[text]);
        for (const view of views) {
          await showIn(page, view);
          await expectFits(page);
          if (isCheckedByAxe(language)) await expectAccessible(page);
        }
        expect(reports.filter((report) => response?.ok() || !report.includes('404'))).toEqual([]);
      }
    },
  );

  test("pages have the merchant's colour and logo, and no other site is asked", async () => {
    const requests: string[] = [];
    const listen = (request: { url(): string }) => requests.push(request.url());
    page.on('request', listen);
    const address = `${live.baseUrl}/pay/${await live.createOrder('brand', order)}`;
    await page.goto(address);
    expect(await page.evaluate("document.querySelector('.logo').naturalWidth")).toBe(1);
    expect(await page.evaluate("getComputedStyle(document.querySelector('.main')).backgroundColor")).toBe(
      'rgb(255, 255, 0)',
    );
    await expectAccessible(page);
    page.off('request', listen);
    const logoUrl = await page.getAttribute('.logo', 'src');
    expect([...new Set(requests)]).toEqual([address, logoUrl]);
  });

  test('the language that a customer chooses stays for the whole payment', async () => {
    const german = textsOf('de');
    await page.goto(`${testing.baseUrl}/pay/${await testing.createOrder('language', order)}`);
    await page.locator('.languages summary').click();
    await page.getByRole('link', { name: 'Deutsch' }).click();
    await page.getByRole('button', { name: german.demo }).click();
    await page.getByRole('button', { name: german.abandon }).click();
    await page.getByRole('button', { name: german.continue }).click();
    await page.getByRole('button', { name: german.succeed }).waitFor();
  });

  test('the waiting page continues without a click when the payment is decided', async () => {
    const { attemptId } = await open(testing, 'waiting', 'demo.demo');
    const isLeased = (leasedUntil: Date | null) =>
      testing.store.run((db) => db.update(attempts).set({ leasedUntil }).where(eq(attempts.attemptId, attemptId)));
    // Another process works on the attempt.
    await isLeased(new Date(Date.now() + 3_600_000));
    await page.goto(`${testing.baseUrl}/back/${attemptId}`);
    await page.getByText(textsOf('en').waitingText).waitFor();
    expect(await page.innerHTML('noscript')).toContain('http-equiv="refresh"');
    await expectFits(page);
    await expectAccessible(page);
    await testing.post(`/demo/${attemptId}`, { outcome: 'decline' });
    await isLeased(null);
    await page.waitForURL(/\/pay\//);
    await page.getByText(textsOf('en').declined).waitFor();
  });
});
