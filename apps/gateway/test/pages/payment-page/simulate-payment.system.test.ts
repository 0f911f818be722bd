import { verifyReturn } from '@order-gateway/client';
import { pageTexts } from '@order-gateway/pages/localization';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectFits } from '../../../../../tools/browser.ts';
import { describePages } from '../../helpers/browser/pages.ts';

await describePages('the buttons of a test order', (pages) => {
  const { gateway, shop, signingSecret, newTestLink, moveTo, findOrder, visit } = pages;
  const view = { hasScript: false };
  const pay = (page: Page) => page.getByRole('button', { name: pageTexts.en.simulate });

  test('Pay pays the order and redirects to the shop', async () => {
    const { payment_link, order_id, service_order_id } = await newTestLink();
    await visit(payment_link, view, async (page) => {
      await pay(page).click();
      await page.waitForURL(`${shop.url}/**`);
      const { pathname, searchParams } = new URL(page.url());
      expect([pathname, Object.fromEntries(searchParams)]).toMatchObject([
        '/thanks',
        { cart: '5', order_id, service_order_id: String(service_order_id), order_status: 'PAID' },
      ]);
      expect(await verifyReturn(page.url(), signingSecret())).toMatchObject({ order_id, order_status: 'PAID' });
      expect(await page.textContent('h1')).toBe('Thank you');
      expect(shop.refererOf(page.url())).toBeUndefined();
      // The page is not cached, so it shows the order's current status after going back.
      await page.goBack();
      expect(await page.textContent('.status')).toBe(pageTexts.en.paid);
      expect(await page.getByRole('button').count()).toBe(0);
    });
    expect(await findOrder(order_id)).toMatchObject({ order_status: 'PAID' });
  });

  test('Pay redirects to a shop that itself redirects to another site', async () => {
    const { payment_link } = await newTestLink({ return_url: `${shop.url}/moved` });
    await visit(payment_link, view, async (page) => {
      await pay(page).click();
      await page.waitForURL(`${shop.otherUrl}/thanks`);
      expect(await page.textContent('h1')).toBe('Thank you');
    });
  });

  test('a double click on Pay and a click in a second window pay only once, and redirect to the shop', async () => {
    const { payment_link, order_id } = await newTestLink();
    await visit(payment_link, view, async (page) => {
      const second = await page.context().newPage();
      await second.goto(payment_link);
      await pay(page).dblclick();
      // The second click aborts the navigation of the first one, which `waitForURL` would report.
      await expect.poll(() => page.url()).toMatch(/order_status=PAID/);
      const { payment_id } = await findOrder(order_id);
      await pay(second).click();
      await second.waitForURL(/order_status=PAID/);
      expect(await findOrder(order_id)).toMatchObject({ payment_id });
    });
    const events = await runQuery(gateway.databaseUrl, `select type from events where order_id = '${order_id}'`);
    expect(events).toEqual([{ type: 'order.paid' }]);
  });

  test('Decline shows the page again with a notice, and Pay still works', async () => {
    const { payment_link, order_id } = await newTestLink();
    await visit(payment_link, view, async (page) => {
      await page.getByRole('button', { name: pageTexts.en.simulateDecline }).click();
      expect(await page.textContent('[role=status]')).toBe(pageTexts.en.declined);
      expect(await findOrder(order_id)).toMatchObject({ order_status: 'UN_PAID' });
      await page.reload();
      expect(await page.textContent('[role=status]')).toBe(pageTexts.en.declined);
      await pay(page).click();
      await page.waitForURL(/order_status=PAID/);
    });
  });

  test.each(['EXPIRED', 'CANCELLED'] as const)(
    'Pay on a page opened before the order became %s does not pay the order',
    async (status) => {
      const order = await newTestLink();
      const texts = { EXPIRED: pageTexts.en.expired, CANCELLED: pageTexts.en.cancelled };
      await visit(order.payment_link, view, async (page) => {
        await moveTo[status](order);
        await pay(page).click();
        await page.waitForURL(/simulate/);
        expect(await page.textContent('.status')).toBe(texts[status]);
        expect(await page.getByRole('button').count()).toBe(0);
      });
      expect(await findOrder(order.order_id)).toMatchObject({ order_status: status });
    },
  );

  test('a form submitted from another site is rejected', async () => {
    const { payment_link, order_id } = await newTestLink();
    await visit(`${shop.url}/form?to=${payment_link}/simulate`, view, async (page) => {
      await page.getByRole('button').click();
      await page.waitForURL(/simulate/);
      expect(await page.textContent('h1')).toBe(pageTexts.en.rejectedTitle);
      await expectFits(page);
    });
    expect(await findOrder(order_id)).toMatchObject({ order_status: 'UN_PAID' });
  });

  // Over http to a local network, browsers send no Sec-Fetch-Site header, so the gateway checks the Origin header.
  test('the form is sent with the Origin header of its page', async () => {
    const { payment_link } = await newTestLink();
    await visit(payment_link, {}, async (page) => {
      const [request] = await Promise.all([page.waitForRequest((sent) => sent.method() === 'POST'), pay(page).click()]);
      expect(await request.headerValue('origin')).toBe(new URL(gateway.baseUrl).origin);
      await page.waitForURL(/order_status=PAID/);
    });
  });
});
