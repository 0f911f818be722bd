import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import {
  describeInBrowser,
  desktop,
  expectAccessible,
  expectFits,
  showIn,
  views,
} from '../../../../../tools/browser.ts';
import { hostileNote } from '../../helpers/browser/pages.ts';
import { startIdentityProvider } from '../../helpers/identity-provider.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postPayment, pressPay } from '../../helpers/send-order.ts';

interface Visitor {
  readonly role: 'read' | 'manage';
  readonly hasScript: boolean;
  readonly timezoneId: string;
}

await describeInBrowser('the console', (browser) => {
  const gateway = useGateway({ hasConsole: true, hasDemo: true });

  const testShop = () => gateway.newMerchant('Test Shop', 'test');

  /** Opens a separate browser context, and signs in with a one-time link. */
  async function signIn(
    { credentials }: Pick<typeof gateway, 'credentials'>,
    { role = 'manage', hasScript = false, timezoneId = 'UTC' }: Partial<Visitor> = {},
  ): Promise<Page> {
    const context = await browser.newContext({ javaScriptEnabled: hasScript, viewport: desktop, timezoneId });
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    const token = await gateway.accounts.createConsoleLink(credentials.clientId, { name: 'Ada', role });
    await page.goto(`${gateway.baseUrl}/console/sign-in/${token}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    return page;
  }

  test('a clerk finds an order by its payment ID and sees that it is paid, with one click', async () => {
    const order = await createOrder(gateway, `clerk-${Math.random()}`);
    const payment_id = `pay-${Math.random()}`;
    await postPayment(gateway.checkout, order.order_token, { payment_id });
    const page = await signIn(gateway, { role: 'read' });
    await page.getByRole('searchbox').fill(payment_id);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('heading', { name: order.order_id }).waitFor();
    expect(await page.locator('.status').allTextContents()).toEqual(['Paid']);
    expect(await page.getByText(`Paid, payment ID ${payment_id}`).isVisible()).toBe(true);
  });

  test('a merchant creates a payment link with two clicks, and sees that the order is paid', async () => {
    const page = await signIn(await testShop());
    await page.getByRole('link', { name: 'New payment link' }).click();
    const values = {
      order_amount: '49,90',
      order_note: 'Invoice 7',
      customer_name: 'Grace Hopper',
      customer_email: 'grace@example.com',
      return_url: 'https://shop.example.com/thanks',
    };
    for (const [name, value] of Object.entries(values)) await page.locator(`[name="${name}"]`).fill(value);
    await page.getByRole('button', { name: 'Create the payment link' }).click();
    const link = await page.getByLabel('Payment link').inputValue();
    expect(await page.getByLabel('Message to send').inputValue()).toContain(link);
    await pressPay(link);
    await page.reload();
    expect(await page.locator('.status').allTextContents()).toEqual(['Paid']);
  });

  test("the script shows and sends times in the reader's zone, and copies the payment link", async () => {
    const order = await createOrder(gateway, `zone-${Date.now()}`);
    const page = await signIn(gateway, { hasScript: true, timezoneId: 'Asia/Kolkata' });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${gateway.baseUrl}/console/orders/${order.service_order_id}`);
    const format = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'Asia/Kolkata' });
    expect(await page.locator('time').first().textContent()).toBe(
      `${format.format(Date.parse(order.created_at))} GMT+5:30`,
    );
    await page.getByRole('button', { name: 'Copy the link' }).click();
    await page.getByRole('button', { name: 'Link copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(order.payment_link);
    await page.goto(`${gateway.baseUrl}/console/orders`);
    // An order_id of ordinary length is on one line.
    expect(await page.evaluate("document.querySelector('td a').getClientRects().length")).toBe(1);
    await page.getByText('Filter').click();
    await page.getByLabel('Created from (GMT+5:30)').fill('2026-01-31T05:30');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL((url) => url.searchParams.get('created_from') === '2026-01-31T00:00:00.000Z');
    expect(await page.getByLabel('Created from (GMT+5:30)').inputValue()).toBe('2026-01-31T05:30');
  });

  test('a merchant finds and cancels an order using only the keyboard', async () => {
    const order = await createOrder(gateway, `keyboard-${Math.random()}`);
    const page = await signIn(gateway);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    const press = async (name: string) => {
      while ((await page.evaluate('document.activeElement.textContent.trim()')) !== name)
        await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
    };
    await press('Figures by day');
    await page.getByRole('cell').first().waitFor();
    await press('Orders');
    await page.getByRole('heading', { name: 'Orders' }).waitFor();
    await press(order.order_id);
    await page.getByRole('heading', { name: order.order_id }).waitFor();
    await press('Cancel the order');
    await page.getByRole('heading', { name: `Cancel order ${order.order_id}?` }).waitFor();
    await press('Cancel the order');
    await page.locator('.status', { hasText: 'Cancelled' }).waitFor();
  });

  test('a merchant finds the failing endpoint with one click, and the error with a second one', async () => {
    const shop = await testShop();
    const body = { url: 'http://127.0.0.1:1/hook' };
    const { id } = (await callJson(shop, 'POST', '/webhook_endpoints', body)).body;
    const order = await createOrder(shop, `failing-${Math.random()}`);
    await pressPay(order.payment_link);
    const deliveries = () => callJson(shop, 'GET', `/webhook_endpoints/${id}/deliveries`);
    await expect.poll(async () => (await deliveries()).body.deliveries[0]?.last_result).toBe('ECONNREFUSED');
    const page = await signIn(shop, { role: 'read' });
    await page.getByRole('link', { name: 'Webhooks' }).click();
    expect(await page.locator('td .status').allTextContents()).toEqual(['Failing']);
    await page.getByRole('link', { name: body.url }).click();
    await page.getByText('ECONNREFUSED').waitFor();
    // On a tablet, the column of the events is wider than a character.
    await page.setViewportSize({ width: 700, height: 800 });
    const box = await page.getByRole('cell', { name: 'order.paid' }).boundingBox();
    expect(box?.width).toBeGreaterThan(150);
  });

  test('no heading of a table is broken within a word on a tablet', async () => {
    const page = await signIn(await testShop());
    await page.setViewportSize({ width: 660, height: 800 });
    await page.getByRole('link', { name: 'People' }).click();
    await page.getByRole('columnheader', { name: 'Name' }).waitFor();
    const lines = `(() => {
      const range = document.createRange();
      range.selectNodeContents(document.querySelector('th'));
      return range.getClientRects().length;
    })()`;
    expect(await page.evaluate(lines)).toBe(1);
  });

  test('every page with long and hostile texts fits and is accessible in every size and colour scheme', async () => {
    const shop = await testShop();
    await gateway.accounts.rename(shop.credentials.clientId, 'W'.repeat(200));
    const order = await createOrder(shop, `\u202e<b>"${'W'.repeat(120)}`, {
      order_note: hostileNote,
      metadata: { ['k'.repeat(40)]: 'v'.repeat(500) },
    });
    await callJson(shop, 'POST', '/webhook_endpoints', { url: `https://shop.example.com/${'x'.repeat(500)}` });
    await postPayment(gateway.checkout, order.order_token, { payment_id: 'p'.repeat(128), order_amount: 1 });
    const paid = await createOrder(shop, 'W'.repeat(100));
    await pressPay(paid.payment_link);
    const refund = { refund_id: 'r'.repeat(128), refund_amount: 1, refund_note: 'fail later' };
    await callJson(shop, 'POST', `/order/${paid.order_id}/refunds`, refund);
    const [{ id }] = (await callJson(shop, 'GET', '/webhook_endpoints')).body.endpoints;
    const page = await signIn(shop, { hasScript: true });
    const reports: string[] = [];
    page.on('console', (message) => message.type() === 'error' && reports.push(message.text()));
    const path = `/orders/${order.service_order_id}`;
    const paths = [
      '/overview',
      '/refused-payments',
      '/orders',
      '/orders?status=LOST',
      '/orders?currency=JPY',
      '/search?q=x',
      path,
      `${path}/cancel`,
      `/orders/${paid.service_order_id}`,
      `/orders/${paid.service_order_id}/refunds?refund_amount=1`,
      '/new-order',
      '/webhooks',
      `/webhooks/${id}`,
      `/webhooks/${id}/delete`,
      '/secrets',
      '/secrets/1/revoke',
      '/brand',
      '/sessions',
      '/sign-in/x',
      '/unknown',
    ];
    for (const path of paths) {
      await page.goto(`${gateway.baseUrl}/console${path}`);
      for (const summary of await page.locator('section summary').all()) await summary.click();
      for (const view of views) {
        await showIn(page, view);
        await expectFits(page);
        await expectAccessible(page);
      }
    }
    // The browser reports the error status of a document, which is not an error of the page.
    expect(reports.filter((text) => !/status of 40[04]/.test(text))).toEqual([]);
  });

  test('another site can neither frame the console nor send its forms', async () => {
    const order = await createOrder(gateway, `attacked-${Math.random()}`);
    const page = await signIn(gateway, { hasScript: true });
    const target = `${gateway.baseUrl}/console/orders/${order.service_order_id}/cancel`;
    // A different host name makes this page a different site.
    await page.route('http://evil.test/**', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<iframe src="${gateway.baseUrl}/console/orders"></iframe><form method="post" action="${target}"><button>Win</button></form>`,
      }),
    );
    await page.goto('http://evil.test/');
    const framed = page.frames().map((frame) => frame.url());
    expect(framed).not.toContain(`${gateway.baseUrl}/console/orders`);
    const [response] = await Promise.all([
      page.waitForResponse(target),
      page.getByRole('button', { name: 'Win' }).click(),
    ]);
    expect(response.status()).toBe(403);
    await page.goto(target.replace('/cancel', ''));
    expect(await page.locator('.status').allTextContents()).toEqual(['Unpaid']);
  });

  test('one click signs a person in with OpenID Connect, without JavaScript', async () => {
    const provider = await startIdentityProvider();
    onTestFinished(async () => void (await provider.close()));
    const withProvider = await runGateway({ hasConsole: true, openId: provider.settings });
    provider.serve(withProvider.baseUrl);
    const claims = { order_gateway: `${withProvider.credentials.clientId}:read`, email_verified: true };
    provider.setClaims({ ...claims, email: 'ada@example.com' });
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    await page.goto(`${withProvider.baseUrl}/console`);
    await page.getByRole('link', { name: 'Sign in with your organization’s account' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});
