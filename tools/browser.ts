import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { openBrowser } from './open-browser.ts';
import { mustSkip } from './skip-if-missing.ts';

/** The size of a page in pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

export const phone = { width: 320, height: 568 };
export const desktop = { width: 1280, height: 800 };

/** Each size and each colour scheme once. They are independent of each other, so not every combination is tested. */
export const views = [
  { viewport: phone, colorScheme: 'light' },
  { viewport: desktop, colorScheme: 'dark' },
] as const;

/** Changes the size and colour scheme of a page. */
export async function showIn(
  page: Page,
  { viewport, colorScheme }: { readonly viewport: Size; readonly colorScheme: 'light' | 'dark' },
): Promise<void> {
  await page.setViewportSize(viewport);
  await page.emulateMedia({ media: 'screen', colorScheme });
}

/** Fails if axe finds a violation. */
export async function expectAccessible(page: Page, part = 'html'): Promise<void> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  const violations = await page.evaluate(
    `axe.run('${part}', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))`,
  );
  expect(violations).toEqual([]);
}

/** Fails if anything is outside the screen, or if the page scrolls sideways. */
export async function expectFits(page: Page): Promise<void> {
  const widths = await page.evaluate('[document.documentElement.scrollWidth, document.documentElement.clientWidth]');
  const [scrolled, shown] = Array.isArray(widths) ? widths : [];
  expect(scrolled).toBe(shown);
  const outside = await page.evaluate(`[...document.querySelectorAll('main *')].filter((element) => {
    const { left, right } = element.getBoundingClientRect();
    return left < 0 || right > document.documentElement.clientWidth;
  }).map((element) => element.outerHTML.slice(0, 80))`);
  expect(outside).toEqual([]);
}

/** Declares a `describe` whose tests use a real browser. Without a browser, it is skipped. */
export async function describeInBrowser(title: string, describeTests: (browser: Browser) => void): Promise<void> {
  const opened = await openBrowser();
  if (opened.kind === 'none') return test.skipIf(mustSkip(`${title} in a real browser`, opened.reason))(title);
  describe(`${title} in ${opened.name}`, () => {
    afterAll(() => opened.browser.close());
    describeTests(opened.browser);
  });
}
