import { copyTestCluster, createServerFolder } from '@order-gateway/dev-postgres/testing';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeInBrowser, phone } from '../../../../tools/browser.ts';
import { startProcess } from '../helpers/gateway-process.ts';

// The setup of a newcomer: `start` with an empty folder, and the demo merchant.

await describeInBrowser('the first payment', (browser) => {
  const closing: (() => Promise<unknown>)[] = [];
  let gateway: Awaited<ReturnType<typeof startProcess>>;
  let headers: Readonly<Record<string, string>>;
  let demoLink: string;
  beforeAll(async () => {
    const { dataDir, remove } = await createServerFolder();
    closing.push(remove);
    await copyTestCluster(dataDir);
    gateway = await startProcess({ DATA_DIR: dataDir });
    closing.push(gateway.stop);
    const banner = await gateway.printed('README.md continues here');
    const [clientId = '', clientSecret = ''] = ['CLIENT_ID', 'CLIENT_SECRET'].map(
      (name) => new RegExp(`${name}=(\\S+)`).exec(banner)?.[1],
    );
    headers = { 'x-client-id': clientId, 'x-client-secret': clientSecret, 'content-type': 'application/json' };
    demoLink = /1\. Pay the order .+?\n +(http\S+)\n/s.exec(banner)?.[1] ?? '';
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });

  const call = async (path: string, init: RequestInit = {}) =>
    Object(await (await fetch(`${gateway.url}${path}`, { ...init, headers })).json());

  /** Creates an order whose customer returns to the page that stands in for a shop. Returns its payment link. */
  async function createOrder(orderId: string): Promise<string> {
    const order = { ...validOrderInput({ order_id: orderId }), return_url: `${gateway.url}/demo/return` };
    const body = JSON.stringify(order);
    const response = await call('/order', { method: 'POST', body });
    return response.payment_link;
  }

  const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

  async function visit(look: (page: Page) => Promise<void>, options: BrowserContextOptions = {}): Promise<void> {
    const context = await browser.newContext({ viewport: phone, locale: 'en', ...options });
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(0);
      await look(page);
    } finally {
      await context.close();
    }
  }

  const expectPaid = async (orderId: string, page: Page) => {
    await page.waitForURL(/\/demo\/return\?.*order_status=PAID/);
    expect(await page.textContent('main')).toMatch(/Valid/);
    const { data } = await call(`/events?order_id=${orderId}`).then(({ events }) => events.at(-1));
    expect(data).toMatchObject({ order_status: 'PAID', payment_id: expect.stringMatching(/^demo_att_/) });
    const { events } = await call(`/events?order_id=${orderId}&type=order.paid`);
    expect(events).toHaveLength(1);
  };

  test.each([
    ['', true],
    [' without JavaScript', false],
  ])('a newcomer pays the demo order with three clicks%s', async (_, javaScriptEnabled) => {
    const link = javaScriptEnabled ? demoLink : await createOrder('no-script');
    await visit(
      async (page) => {
        await page.goto(link);
        await click(page, 'Open the checkout');
        await click(page, 'It succeeds');
        await expectPaid(javaScriptEnabled ? 'demo-1000' : 'no-script', page);
      },
      { javaScriptEnabled },
    );
  });

  test('two tabs pay in one session, once', async () => {
    const link = await createOrder('two-tabs');
    await visit(async (page) => {
      const other = await page.context().newPage();
      for (const tab of [page, other]) {
        await tab.goto(link);
        await tab.getByRole('button', { name: /^(Open the checkout|Continue the payment)$/ }).click();
        await tab.getByRole('button', { name: 'It succeeds' }).waitFor();
      }
      expect(other.url()).toBe(page.url());
      await click(page, 'It succeeds');
      await expectPaid('two-tabs', page);
      await click(other, 'It succeeds');
      await expectPaid('two-tabs', other);
    });
  });

  test('a customer who goes back continues the same payment', async () => {
    const link = await createOrder('back');
    await visit(async (page) => {
      await page.goto(link);
      await click(page, 'Open the checkout');
      await page.getByRole('button', { name: 'It succeeds' }).waitFor();
      const session = page.url();
      await page.goBack();
      await click(page, 'Continue the payment');
      await page.waitForURL(session);
      await click(page, 'It succeeds');
      await expectPaid('back', page);
    });
  });

  test('double clicks start one payment', async () => {
    const link = await createOrder('double-click');
    await visit(async (page) => {
      await page.goto(link);
      await page.getByRole('button', { name: 'Open the checkout' }).dblclick();
      await page.getByRole('button', { name: 'It succeeds' }).dblclick();
      await expect.poll(() => page.url()).toMatch(/order_status=PAID/);
      await expectPaid('double-click', page);
    });
  });

  test('after a decline, the customer pays with another attempt', async () => {
    const link = await createOrder('declined');
    await visit(async (page) => {
      await page.goto(link);
      await click(page, 'Open the checkout');
      const session = page.url();
      await click(page, 'It is declined');
      await page.getByText('The payment was declined.').waitFor();
      await click(page, 'Test payment');
      await page.getByRole('button', { name: 'It succeeds' }).waitFor();
      expect(page.url()).not.toBe(session);
      await click(page, 'It succeeds');
      await expectPaid('declined', page);
    });
  });
});
