import { pageTexts } from '@order-gateway/pages/localization';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { desktop, expectAccessible, expectFits, showIn } from '../../../../../tools/browser.ts';
import { describePages } from '../../helpers/browser/pages.ts';
import { webp } from '../../helpers/images.ts';
import { callJson, createOrder, postJson, postPayment, pressPay } from '../../helpers/send-order.ts';

const texts = pageTexts.en;

await describePages('an open payment page', (pages) => {
  const { gateway, newLink, newTestLink, newPublicLink, moveTo, visit } = pages;
  const inMinutes = (count: number) => new Date(Date.now() + count * 60_000).toISOString();
  const checkout = (method: string, members: object) =>
    postJson(gateway.checkout, `/gateway.v1.CheckoutService/${method}`, JSON.stringify(members));

  test.each([
    ['is paid', texts.paid, ({ payment_link }) => pressPay(payment_link)],
    ['expires', texts.expired, moveTo.EXPIRED],
    ['is cancelled', texts.cancelled, moveTo.CANCELLED],
  ] satisfies [string, string, (typeof moveTo)['PAID']][])(
    'when an order %s, the open page shows the new status without a reload',
    async (_, badge, close) => {
      const order = await newTestLink({ order_expires_at: inMinutes(9) });
      await visit(order.payment_link, { viewport: desktop }, async (page) => {
        expect(await page.locator('button.button').count()).toBe(2);
        await close(order);
        await page.getByText(badge, { exact: true }).waitFor();
        expect(await page.locator('button.button, [data-left-ms]').count()).toBe(0);
        expect(await page.title()).toContain(badge);
        await expectFits(page);
        await expectAccessible(page);
      });
    },
  );

  test('shows a payment that was made in time but reported after the expiry', async () => {
    const order = await newTestLink({ order_expires_at: inMinutes(9) });
    await moveTo.EXPIRED(order);
    await visit(order.payment_link, {}, async (page) => {
      await page.getByText(texts.expired, { exact: true }).waitFor();
      const paid_at = new Date(Date.parse(order.created_at) - 60_000).toISOString();
      expect(await postPayment(gateway.checkout, order.order_token, { paid_at })).toMatchObject({ status: 200 });
      await page.getByText(texts.paid, { exact: true }).waitFor();
    });
  });

  test('shows that a payment starts and ends, and polls at most once every 5 s', async () => {
    const { order_token, payment_link } = await newLink();
    const attempt = { order_token, attempt_id: 'a-1' };
    await visit(payment_link, { hasClock: true }, async (page) => {
      await page.evaluate(
        'window.polls = 0; const send = fetch; window.fetch = (...call) => (polls += 1, send(...call))',
      );
      const polls = () => page.evaluate('polls');
      await page.clock.runFor(999);
      expect(await polls()).toBe(0);
      await page.clock.runFor(1);
      expect(await polls()).toBe(1);
      await checkout('StartPayment', attempt);
      await page.getByText(texts.inProgressText).waitFor();
      expect(await page.locator('.button').allTextContents()).toEqual([texts.continue]);
      await checkout('EndPayment', attempt);
      await page.clock.runFor(4_999);
      expect(await polls()).toBe(1);
      await page.clock.runFor(1);
      expect(await polls()).toBe(2);
      await page.locator('.button.main').waitFor();
    });
  });

  test('counts down until the order has expired', async () => {
    const { payment_link, order_id } = await newTestLink({ order_expires_at: inMinutes(9) });
    await visit(payment_link, {}, async (page) => {
      const countdown = page.locator('[data-left-ms]');
      await expect.poll(() => countdown.textContent()).toMatch(/^8 minutes, \d+ seconds?$/);
      await runQuery(
        gateway.databaseUrl,
        `update orders set order_expires_at = now() + interval '2 s' where order_id = '${order_id}'`,
      );
      await page.getByText(texts.expired, { exact: true }).waitFor();
    });
  });

  test("shows times in the customer's time zone, or in UTC without JavaScript", async () => {
    const order = await newTestLink();
    await moveTo.PAID(order);
    await visit(order.payment_link, { timezone: 'Asia/Kolkata' }, async (page) => {
      const datetime = await page.getAttribute('time', 'datetime');
      const local = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeStyle: 'short', timeZone: 'Asia/Kolkata' });
      expect(await page.textContent('time')).toBe(local.format(new Date(datetime ?? '')));
      expect(await page.textContent('.order')).toMatch(/GMT\+5:30/);
    });
    await visit(order.payment_link, { hasScript: false }, async (page) => {
      expect(await page.textContent('.order')).toMatch(/UTC/);
    });
  });

  test('does not poll while it is hidden, and shows changes when it becomes visible again', async () => {
    const order = await newTestLink();
    await visit(order.payment_link, {}, async (page) => {
      const setHidden = (isHidden: boolean) =>
        page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} });
          document.dispatchEvent(new Event('visibilitychange'))`);
      const aborted = page.waitForEvent('requestfailed');
      // The page polls as soon as it becomes visible. Hiding it aborts that request.
      await setHidden(false);
      await setHidden(true);
      await aborted;
      await moveTo.PAID(order);
      expect(await page.locator('.status').count()).toBe(0);
      await setHidden(false);
      await page.getByText(texts.paid, { exact: true }).waitFor();
    });
  });

  test('copies the link', async () => {
    const { address } = await newPublicLink();
    await visit(address, { viewport: desktop }, async (page) => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await page.getByRole('button', { name: texts.copyLink }).click();
      await page.getByRole('button', { name: texts.linkCopied }).waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(address);
    });
  });

  test.each(['#0b5fff', '#ffff00', '#ffffff', '#000000', '#777777'])(
    'a page with the brand colour %s is accessible, and loads only the logo',
    async (color) => {
      const shop = await gateway.newMerchant('Test Shop');
      const links = {
        support_email: 'help@shop.example',
        support_url: 'https://shop.example/',
        privacy_url: 'https://shop.example/',
      };
      const brand = { logo: webp.toString('base64'), color, ...links };
      expect((await callJson(shop, 'PATCH', '/brand', brand)).status).toBe(200);
      const { body } = await callJson(shop, 'GET', '/brand');
      const { payment_link } = await createOrder(shop, color);
      const loaded = await visit(payment_link, {}, async (page) => {
        expect(await page.evaluate("document.querySelector('.logo').naturalWidth")).toBe(8);
        for (const colorScheme of ['light', 'dark'] as const) {
          await showIn(page, { viewport: desktop, colorScheme });
          await expectFits(page);
          await expectAccessible(page);
        }
      });
      expect([...new Set(loaded)]).toEqual([body.logo_url]);
    },
  );
});
