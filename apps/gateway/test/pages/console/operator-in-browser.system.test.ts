import { expect, test } from 'vitest';
import {
  describeInBrowser,
  desktop,
  expectAccessible,
  expectFits,
  showIn,
  views,
} from '../../../../../tools/browser.ts';
import { createOperatorLink } from '../../../src/pages/console/operator/operator-access.ts';
import { hostileNote } from '../../helpers/browser/pages.ts';
import { testSecretsKey, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postPayment } from '../../helpers/send-order.ts';

await describeInBrowser("the operators' view", (browser) => {
  const gateway = useGateway({ hasOperatorView: true });

  /** Opens a separate browser context, and signs in. */
  async function signIn({ hasScript = false } = {}) {
    const context = await browser.newContext({ javaScriptEnabled: hasScript, viewport: desktop });
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    await page.goto(createOperatorLink([testSecretsKey], gateway.adminPort));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Health' }).waitFor();
    return page;
  }

  test('after signing in, an operator sees the failing endpoint with its merchant and its error', async () => {
    const { body } = await callJson(gateway, 'POST', '/webhook_endpoints', { url: 'http://127.0.0.1:1/hook' });
    const otherShop = await gateway.newMerchant('Works');
    await callJson(otherShop, 'POST', '/webhook_endpoints', { url: 'http://127.0.0.1:1/unused' });
    for (const number of [1, 2, 3]) {
      const order = await createOrder(gateway, `failing-${number}-${Math.random()}`);
      await postPayment(gateway.checkout, order.order_token, { payment_id: `p-${Math.random()}` });
    }
    const deliveries = () => callJson(gateway, 'GET', `/webhook_endpoints/${body.id}/deliveries`);
    await expect
      .poll(async () => (await deliveries()).body.deliveries.some((delivery: object) => 'last_result' in delivery))
      .toBe(true);
    const page = await signIn();
    const rows = await page.locator('tbody tr').all();
    expect(rows).toHaveLength(1);
    const texts = await rows[0]?.locator('td').allInnerTexts();
    expect(texts).toEqual([
      expect.stringContaining('http://127.0.0.1:1/hook'),
      expect.stringContaining(gateway.credentials.clientId),
      expect.stringMatching(/UTC\s+3 deliveries wait$/),
      'ECONNREFUSED',
    ]);
    expect(await page.getByText('Ready', { exact: true }).isVisible()).toBe(true);
  });

  test('the audit log shows each id on one line, on a wide screen and on a phone', async () => {
    // The details of this entry take all the width that they can get.
    await callJson(gateway, 'POST', '/webhook_endpoints', { url: `http://127.0.0.1:1/${'long-path/'.repeat(20)}` });
    const page = await signIn();
    await page.goto(`http://localhost:${gateway.adminPort}/operator/audit-log`);
    for (const width of [1280, 375]) {
      await page.setViewportSize({ width, height: 800 });
      await expectFits(page);
      const lines = await page.locator('td .id').evaluateAll((ids) => ids.map((id) => id.getClientRects().length));
      expect(lines.length).toBeGreaterThan(0);
      expect([width, Math.max(...lines)]).toEqual([width, 1]);
    }
  });

  test('every page with long and hostile texts fits and is accessible in every size and colour scheme', async () => {
    const { clientId } = gateway.credentials;
    await gateway.accounts.rename(clientId, [...hostileNote].slice(0, 200).join(''));
    await callJson(gateway, 'POST', '/webhook_endpoints', { url: `http://127.0.0.1:1/${'x'.repeat(500)}?<script>` });
    const order = await createOrder(gateway, `\u202e<b>"${'W'.repeat(120)}`);
    const { order_token } = order;
    await postPayment(gateway.checkout, order_token, { payment_id: `<script>${'p'.repeat(120)}`, order_amount: 1 });
    await postPayment(gateway.checkout, order_token, { payment_id: `p-${Math.random()}` });
    const page = await signIn({ hasScript: true });
    await expect.poll(async () => (await page.reload())?.text()).toContain('xxx');
    const reports: string[] = [];
    page.on('console', (message) => message.type() === 'error' && reports.push(message.text()));
    for (const path of ['', '/refused-payments', '/accounts', `/audit-log?client_id=${clientId}`, '/sign-in/x']) {
      await page.goto(`http://localhost:${gateway.adminPort}/operator${path}`);
      for (const view of views) {
        await showIn(page, view);
        await expectFits(page);
        await expectAccessible(page);
      }
      expect(await page.title()).not.toBe('run');
      expect(await page.locator('main script, main img').count()).toBe(0);
    }
    expect(reports).toEqual([]);
  });
});
