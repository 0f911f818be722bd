import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { desktop, expectAccessible, type Size } from '../../../../../tools/browser.ts';
import { describePages } from '../../helpers/browser/pages.ts';

const phone = { width: 390, height: 844 };

await describePages('GET /docs', (pages) => {
  const { gateway, visit } = pages;

  /** Fails unless the page fits the screen, and has a colour scheme and an accessible navigation bar. */
  const expectShown = async (page: Page, colorScheme: 'light' | 'dark', { width }: Size) => {
    await page.getByRole('heading', { name: 'Create an order' }).first().waitFor();
    expect(await page.evaluate("document.body.classList.contains('dark-mode')")).toBe(colorScheme === 'dark');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    await expectAccessible(page, '.site');
  };

  test('on a phone, it fits the light screen and has an accessible navigation bar', async () => {
    await visit(`${gateway.baseUrl}/docs`, { viewport: phone, colorScheme: 'light' }, (page) =>
      expectShown(page, 'light', phone),
    );
  });

  // Loading the page takes the browser seconds, so one page shows everything.
  test('on a laptop, it fits the dark screen, finds operations, shows samples and sends test calls', async () => {
    const loaded = await visit(`${gateway.baseUrl}/docs`, { viewport: desktop, colorScheme: 'dark' }, async (page) => {
      await expectShown(page, 'dark', desktop);
      for (const name of ['Create an order', 'Look up an order', 'Cancel an order', 'List orders'])
        await page.getByRole('link', { name }).first().waitFor();
      await page.getByText('curl').first().waitFor();
      await page.getByText('Code samples', { exact: true }).first().waitFor();
      expect(await page.getByText('Client Libraries').count()).toBe(0);

      const operation = page.getByRole('region', { name: 'Create an order' });
      await operation.getByTestId('client-picker').click();
      await page.getByRole('option', { name: 'Node.js SDK' }).click();
      await operation.getByText('createClient').first().waitFor();

      await page.getByRole('button', { name: 'Open Search' }).first().click();
      await page.getByRole('combobox', { name: 'Enter search query' }).fill('cancel');
      await page.getByRole('option', { name: 'Cancel an order' }).first().click();
      await page.waitForURL(/#.*cancel/i);

      await page.getByRole('button', { name: 'Open Group - Events' }).click();
      await page.getByRole('link', { name: 'List events' }).click();
      await page.getByRole('button', { name: 'Test Request (get /events)' }).click();
      const response = page.waitForResponse((candidate) => new URL(candidate.url()).pathname === '/events');
      await page.getByRole('button', { name: /^Send/ }).first().click();
      // The page uses the credentials of the demo merchant, who has no events yet.
      expect(await (await response).json()).toMatchObject({ events: [] });
      await page.getByText('200 OK').waitFor();
    });
    expect(loaded.filter((url) => !url.startsWith(`${gateway.baseUrl}/`) && !/^(data|blob):/.test(url))).toEqual([]);
    expect(loaded).toContain(`${gateway.baseUrl}/docs/reference.js`);
  });

  test('on a phone, a guide fits the screen, and its tables break no word', async () => {
    await visit(`${gateway.baseUrl}/docs/refunds`, { viewport: phone }, async (page) => {
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width);
      const lines = await page
        .locator('table code')
        .evaluateAll((codes) =>
          codes.filter((code) => !/\s/.test(code.textContent)).map((code) => code.getClientRects().length),
        );
      expect(lines.length).toBeGreaterThan(10);
      expect(lines.filter((count) => count > 1)).toEqual([]);
      await expectAccessible(page);
    });
  });

  test('links to the guides without JavaScript', async () => {
    await visit(`${gateway.baseUrl}/docs`, { hasScript: false }, async (page) => {
      await page.getByRole('link', { name: 'The order checksum' }).click();
      expect(await page.textContent('h1')).toContain('checksum');
    });
  });
});
