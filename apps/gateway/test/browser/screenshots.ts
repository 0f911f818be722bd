import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AccountId } from '@gateway/domain/accounts/account';
import { type Brand, noBrand } from '@gateway/domain/accounts/brand';
import { parseCheckoutTemplate } from '@gateway/domain/links/checkout-link';
import type { Order } from '@gateway/domain/orders/order';
import type { LinkedOrder } from '@gateway/domain/orders/order-store';
import { sampleOrder } from '@gateway/domain/testing/sample-orders';
import type { Page } from 'playwright-core';
import { logoPath } from '../../src/brand/brand-response.ts';
import { type PageLocale, pageLanguages } from '../../src/payment-page/localization.ts';
import { failurePage, paymentPage } from '../../src/payment-page/payment-page.ts';
import { fixedDeps } from '../helpers/fixed-deps.ts';
import { createMemoryLogger } from '../helpers/memory-logger.ts';
import { openBrowser } from './open-browser.ts';

// `pnpm screenshots FOLDER` takes pictures of the payment page: in every state, size, colour scheme and language, and on paper, with
// and without a brand. Look at them after a change of its style.

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: pnpm screenshots FOLDER');

const deps = {
  ...fixedDeps(createMemoryLogger().logger),
  checkoutTemplate: parseCheckoutTemplate('https://pay.example/{order_token}'),
};
const nowMs = deps.now();
const merchant = {
  name: 'Blue Bottle Roasters',
  mode: 'live',
  isDisabled: false,
  signingSecret: null,
  brand: null,
} as const;
const lease = { checkoutId: 2 as AccountId, attemptId: 'a-1', endsAtMs: nowMs + 600_000, isLive: true };
const payment = { checkoutId: null, paymentId: 'pay_7Yh2LqXw90', paidAtMs: nowMs };

const logo = { digest: 'x'.repeat(43), type: 'png', width: 320, height: 96 } as const;
const wordmark = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 96"><path fill="#0f766e" d="M16 16h64v64H16z"/><text x="100" y="66" font-family="sans-serif" font-size="52" font-weight="700" fill="#0f766e">Bottle</text></svg>`;
const brand: Brand = {
  ...{ ...noBrand, logo, color: '#0f766e', support_email: 'help@bluebottle.example' },
  ...{ support_url: 'https://bluebottle.example/help', terms_url: 'https://bluebottle.example/terms' },
  privacy_url: 'https://bluebottle.example/privacy',
};

function linkTo(order: Partial<Order>, other: Partial<LinkedOrder['merchant']> = {}): LinkedOrder {
  const fields = {
    order_id: 'WEB-2026-000417',
    order_amount: 48.5,
    order_currency: 'USD',
    order_note: 'Two bags of Ethiopia Sidama, whole bean',
  };
  const made = sampleOrder(1 as AccountId, fields);
  return { order: { ...made, expiresAtMs: nowMs + 560_000, ...order }, merchant: { ...merchant, ...other } };
}

const states: Readonly<Record<string, LinkedOrder>> = {
  unpaid: linkTo({}),
  'unpaid-long-note': linkTo({ fields: { ...linkTo({}).order.fields, order_note: 'Two bags of coffee. '.repeat(40) } }),
  'in-progress': linkTo({ lease }),
  paid: linkTo({ orderStatus: 'PAID', payment }),
  expired: linkTo({ orderStatus: 'EXPIRED', expiresAtMs: nowMs }),
  cancelled: linkTo({ orderStatus: 'CANCELLED', cancelledAtMs: nowMs }),
  test: linkTo({}, { mode: 'test' }),
};

const brands = { plain: null, branded: brand } as const;
const widths = { 320: 568, 390: 844, 768: 1_024, 1440: 900 } as const;

const opened = await openBrowser();
if (opened.kind === 'none') throw new Error(`no browser: ${opened.reason}`);
const page = await opened.browser.newPage();
let html = '';
await page.route('**', (route) => {
  const isLogo = route.request().url().endsWith(logoPath(logo));
  return route.fulfill(
    isLogo ? { contentType: 'image/svg+xml', body: wordmark } : { contentType: 'text/html', body: html },
  );
});
await mkdir(folder, { recursive: true });

/** Fails if the page can be scrolled horizontally. */
async function take(name: string, shown: Page): Promise<void> {
  await shown.goto('http://localhost/payment/x');
  if (await shown.evaluate('document.documentElement.scrollWidth > innerWidth')) throw new Error(`${name} overflows`);
  await shown.screenshot({ path: join(folder ?? '', `${name}.png`), fullPage: true });
}

const render = (link: LinkedOrder, locale: PageLocale, shown: Brand | null) =>
  paymentPage(deps, { order: link.order, merchant: { ...link.merchant, brand: shown } }, locale);

for (const [brandName, shown] of Object.entries(brands)) {
  for (const [state, link] of Object.entries(states)) {
    html = await render(link, 'en', shown);
    for (const [width, height] of Object.entries(widths)) {
      await page.setViewportSize({ width: Number(width), height });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ media: 'screen', colorScheme });
        await take(`${state}-${brandName}-${width}-${colorScheme}`, page);
      }
    }
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await take(`${state}-${brandName}-print`, page);
  }
  await page.emulateMedia({ media: 'screen', colorScheme: 'light' });
  for (const language of pageLanguages) {
    for (const [state, width] of [
      ['unpaid', 320],
      ['paid', 390],
      ['test', 768],
    ] as const) {
      await page.setViewportSize({ width, height: widths[width] });
      const link = states[state];
      if (link === undefined) continue;
      html = await render(link, language, shown);
      await take(`${state}-${brandName}-${width}-${language}`, page);
    }
  }
}
for (const status of [404, 403, 503]) {
  html = await failurePage(status, 'en');
  await take(`failure-${status}`, page);
}
await opened.browser.close();
