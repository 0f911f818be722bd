import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type AccountId, type Brand, noBrand } from '@order-gateway/domain/accounts';
import { parseCheckoutTemplate } from '@order-gateway/domain/links';
import type { AmountHundredths } from '@order-gateway/domain/money';
import type { LinkedOrder, Order } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { pageLanguages } from '@order-gateway/pages/localization';
import { qrCodeSvg } from '@order-gateway/pages/qr-code';
import { openBrowser } from '../../../../../tools/open-browser.ts';
import { logoPath } from '../../../src/operations/brands.ts';
import { failurePage, paymentPage } from '../../../src/pages/payment-page/payment-page.ts';
import { fixedDeps } from '../../helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../helpers/memory-logger.ts';

// `pnpm screenshots FOLDER` takes screenshots of the payment page in every state, size, colour scheme and language, and
// in print, with and without a brand. It reports horizontal scrolling, elements outside the screen, headings with a
// very short last line, and a Pay button below the first screen of a phone. Look at the screenshots after changing the
// style sheet.

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: pnpm screenshots FOLDER');

const deps = {
  ...fixedDeps(createMemoryLogger().logger),
  checkoutTemplate: parseCheckoutTemplate('https://pay.example/{order_token}'),
};
const nowMs = deps.now();
const merchant = {
  clientId: 'app_1',
  name: 'Blue Bottle Roasters',
  mode: 'live',
  isDisabled: false,
  returnSecrets: [],
  brand: null,
} as const;
const lease = { checkoutId: 2 as AccountId, attemptId: 'a-1', endsAtMs: nowMs + 600_000, isLive: true };
const refused = { checkoutId: 2 as AccountId, paymentId: 'pay_1', amount: 4849n as AmountHundredths, currency: 'USD' };
const refusedPayments = [{ ...refused, paidAtMs: nowMs, code: 'payment_mismatch', refusedAtMs: nowMs }] as const;
const payment = { checkoutId: null, paymentId: 'pay_7Yh2LqXw90', paidAtMs: nowMs };

const logo = { digest: 'x'.repeat(43), type: 'png', width: 320, height: 96 } as const;
const wordmark = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 96"><path fill="#0f766e" d="M16 16h64v64H16z"/><text x="100" y="66" font-family="sans-serif" font-size="52" font-weight="700" fill="#0f766e">Bottle</text></svg>`;
const brand: Brand = {
  ...noBrand,
  logo,
  color: '#0f766e',
  support_email: 'help@bluebottle.example',
  support_url: 'https://bluebottle.example/help',
  terms_url: 'https://bluebottle.example/terms',
  privacy_url: 'https://bluebottle.example/privacy',
  payment_instructions: 'Transfer to Blue Bottle Roasters\nIBAN DE75 5121 0800 1245 1261 99\nor pay at the counter.',
};

function linkTo(order: Partial<Order>, merchantOverrides: Partial<LinkedOrder['merchant']> = {}): LinkedOrder {
  const fields = {
    order_id: 'WEB-2026-000417',
    order_amount: 48.5,
    order_currency: 'USD',
    order_note: 'Two bags of Ethiopia Sidama, whole bean',
  };
  const sample = sampleOrder(1 as AccountId, fields);
  return {
    order: { ...sample, expiresAtMs: nowMs + 560_000, ...order },
    merchant: { ...merchant, ...merchantOverrides },
  };
}

const states: Readonly<Record<string, LinkedOrder>> = {
  unpaid: linkTo({}),
  'unpaid-long-note': linkTo({ fields: { ...linkTo({}).order.fields, order_note: 'Two bags of coffee. '.repeat(40) } }),
  'in-progress': linkTo({ lease }),
  refused: linkTo({ refusedPayments }),
  'expired-refused': linkTo({ orderStatus: 'EXPIRED', expiresAtMs: nowMs, refusedPayments }),
  paid: linkTo({ orderStatus: 'PAID', payment }),
  expired: linkTo({ orderStatus: 'EXPIRED', expiresAtMs: nowMs }),
  cancelled: linkTo({ orderStatus: 'CANCELLED', cancelledAtMs: nowMs }),
  test: linkTo({}, { mode: 'test' }),
};

const brands = { plain: null, branded: brand } as const;
const phone = { width: 320, height: 568 };
const screens = [phone, { width: 390, height: 844 }, { width: 768, height: 1_024 }, { width: 1_440, height: 900 }];
const failureStatuses = [404, 403, 503];

const opened = await openBrowser();
if (opened.kind === 'none') throw new Error(`no browser: ${opened.reason}`);
const page = await opened.browser.newPage();
let html = '';
await page.route('**', (route) => {
  const url = route.request().url();
  // The page polls for changes.
  if (route.request().resourceType() === 'fetch') return route.fulfill({ status: 304 });
  if (url.endsWith(logoPath(logo))) return route.fulfill({ contentType: 'image/svg+xml', body: wordmark });
  if (url.endsWith('/qr.svg')) return route.fulfill({ contentType: 'image/svg+xml', body: qrCodeSvg(url) });
  return route.fulfill({ contentType: 'text/html', body: html });
});
await mkdir(folder, { recursive: true });

const faults: string[] = [];
let count = 0;

/** Takes the screenshots of a page, and records its layout faults. */
async function take(name: string, content: string): Promise<void> {
  html = content;
  await page.goto('http://localhost/payment/x');
  for (const viewport of screens) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ media: 'screen', colorScheme });
      await photograph(`${name}-${viewport.width}-${colorScheme}`);
    }
    const pageFaults = (await page.evaluate(`(${findFaults})(${viewport === phone})`)) as string[];
    faults.push(...pageFaults.map((fault) => `${name}-${viewport.width} ${fault}`));
  }
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await photograph(`${name}-print`);
}

async function photograph(name: string): Promise<void> {
  count += 1;
  await page.screenshot({ path: join(folder ?? '', `${name}.png`), fullPage: true });
}

/** Runs in the browser: returns descriptions of the page's layout faults. */
const findFaults = `(isPhone) => {
  const found = [];
  const { scrollWidth, clientWidth, clientHeight } = document.documentElement;
  if (scrollWidth > clientWidth) found.push('can be scrolled horizontally');
  for (const element of document.querySelectorAll('main *')) {
    const { left, right } = element.getBoundingClientRect();
    if (left < 0 || right > clientWidth) found.push(element.outerHTML.slice(0, 60) + ' is outside the screen');
  }
  for (const heading of document.querySelectorAll('h1')) {
    const range = document.createRange();
    range.selectNodeContents(heading);
    const lines = Map.groupBy(range.getClientRects(), ({ bottom }) => Math.round(bottom / 8));
    const widths = [...lines.values()].map((parts) => Math.max(...parts.map(({ right }) => right)) - Math.min(...parts.map(({ left }) => left)));
    if (widths.length > 1 && widths.at(-1) < Math.max(...widths) / 4) found.push('orphan in ' + heading.textContent);
  }
  // A notice comes before the button.
  const pay = document.querySelector('main:not(:has(.owed)) .button.main');
  if (isPhone && pay?.getBoundingClientRect().bottom > clientHeight) found.push('Pay is not on the first screen');
  return found;
}`;

for (const language of pageLanguages) {
  for (const [brandName, brand] of Object.entries(brands)) {
    for (const [state, { order, merchant }] of Object.entries(states)) {
      const content = await paymentPage(deps, { order, merchant: { ...merchant, brand } }, language);
      await take(`${state}-${brandName}-${language}`, content);
    }
  }
  for (const status of failureStatuses)
    await take(`failure-${status}-${language}`, await failurePage(status, language));
}
await opened.browser.close();
process.stdout.write(`${count} screenshots, ${faults.length} faults\n${faults.map((fault) => `${fault}\n`).join('')}`);
if (faults.length > 0) process.exitCode = 1;
