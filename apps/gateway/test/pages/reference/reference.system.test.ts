import { expect, test } from 'vitest';
import { desktop, expectAccessible } from '../../../../../tools/browser.ts';
import { describePages } from '../../helpers/browser/pages.ts';

const phone = { width: 390, height: 844 };

await describePages('GET /docs', (pages) => {
  const { gateway, visit } = pages;

  /** Fails if the page has loaded or called anything from another server. */
  const expectSameOrigin = (loaded: readonly string[]) =>
    expect(loaded.filter((url) => !url.startsWith(`${gateway.baseUrl}/`) && !/^(data|blob):/.test(url))).toEqual([]);

  test('shows the operations on orders and a code sample, and loads everything from the gateway', async () => {
    const loaded = await visit(`${gateway.baseUrl}/docs`, { viewport: desktop }, async (page) => {
      for (const name of ['Create an order', 'Look up an order', 'Cancel an order', 'List orders'])
        await page.getByRole('link', { name }).first().waitFor();
      await page.getByRole('heading', { name: 'Create an order' }).first().waitFor();
      await page.getByText('curl').first().waitFor();
      await page.getByText('Code samples', { exact: true }).first().waitFor();
      expect(await page.getByText('Client Libraries').count()).toBe(0);
    });
    expectSameOrigin(loaded);
    expect(loaded).toContain(`${gateway.baseUrl}/docs/reference.js`);
  });

  test('has a search that finds an operation', async () => {
    await visit(`${gateway.baseUrl}/docs`, { viewport: desktop }, async (page) => {
      await page.getByRole('button', { name: 'Open Search' }).first().click();
      await page.getByRole('combobox', { name: 'Enter search query' }).fill('cancel');
      await page.getByRole('option', { name: 'Cancel an order' }).first().click();
      await page.waitForURL(/#.*cancel/i);
    });
  });

  test('shows a sample for the Node.js SDK', async () => {
    await visit(`${gateway.baseUrl}/docs`, { viewport: desktop }, async (page) => {
      const operation = page.getByRole('region', { name: 'Create an order' });
      await operation.getByTestId('client-picker').click();
      await page.getByRole('option', { name: 'Node.js SDK' }).click();
      await operation.getByText('createClient').first().waitFor();
    });
  });

  test.each(['light', 'dark'] as const)(
    'has a navigation bar that is accessible in the %s scheme',
    async (colorScheme) => {
      await visit(`${gateway.baseUrl}/docs`, { viewport: phone, colorScheme }, async (page) => {
        await page.getByRole('heading', { name: 'Create an order' }).first().waitFor();
        await expectAccessible(page, '.site');
      });
    },
  );

  test('can send a test call to the gateway', async () => {
    const loaded = await visit(`${gateway.baseUrl}/docs`, { viewport: desktop }, async (page) => {
      await page.getByRole('button', { name: 'Open Group - Events' }).click();
      await page.getByRole('link', { name: 'List events' }).click();
      await page.getByRole('button', { name: 'Test Request (get /events)' }).click();
      const response = page.waitForResponse((candidate) => new URL(candidate.url()).pathname === '/events');
      await page.getByRole('button', { name: /^Send/ }).first().click();
      // The page uses the credentials of the demo merchant, who has no events yet.
      expect(await (await response).json()).toMatchObject({ events: [] });
      await page.getByText('200 OK').waitFor();
    });
    expectSameOrigin(loaded);
  });

  test.each([
    ['light', desktop],
    ['dark', desktop],
    ['dark', phone],
  ] as const)('fits the screen in the %s scheme at %o', async (colorScheme, viewport) => {
    await visit(`${gateway.baseUrl}/docs`, { viewport, colorScheme }, async (page) => {
      await page.getByRole('heading', { name: 'Create an order' }).first().waitFor();
      const dark = await page.evaluate("document.body.classList.contains('dark-mode')");
      expect(dark).toBe(colorScheme === 'dark');
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
    });
  });

  test('links to the guides without JavaScript', async () => {
    await visit(`${gateway.baseUrl}/docs`, { hasScript: false }, async (page) => {
      await page.getByRole('link', { name: 'The order checksum' }).click();
      expect(await page.textContent('h1')).toContain('checksum');
    });
  });
});
