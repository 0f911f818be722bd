import { orderStatuses } from '@order-gateway/domain/orders';
import { type PageLanguage, pageTexts } from '@order-gateway/pages/localization';
import jsqr from 'jsqr';
import { describe, expect, test } from 'vitest';
import { desktop, expectAccessible, expectFits, phone, showIn, views } from '../../../../../tools/browser.ts';
import { describePages, hostileNote, isCheckedByAxe, visitedLanguages } from '../../helpers/browser/pages.ts';
import { createOrder } from '../../helpers/send-order.ts';

await describePages('GET /payment/{order_token}', (pages) => {
  const { gateway, newLink, newTestLink, newPublicLink, moveTo, amountText, payText, visit } = pages;

  /** Fails unless the page at an address fits and is accessible in every size and colour scheme, and loads nothing. */
  const expectLayout = async (address: string) => {
    const loaded = await visit(address, {}, async (page) => {
      for (const view of views) {
        await showIn(page, view);
        await expectFits(page);
        await expectAccessible(page);
      }
    });
    expect(loaded).toEqual([]);
  };

  test.each(visitedLanguages)(
    '200 in %s: the page is complete, fits and is accessible in every size and colour scheme',
    async (language) => {
      const texts = pageTexts[language];
      const { payment_link } = await newLink({ order_note: hostileNote });
      const amount = amountText(language);
      const loaded = await visit(payment_link, { language }, async (page) => {
        expect(await page.getAttribute('html', 'lang')).toBe(language);
        expect(await page.getAttribute('html', 'dir')).toBe(language === 'ar' ? 'rtl' : 'ltr');
        for (const view of views) {
          await showIn(page, view);
          for (const text of [texts.payTo, 'Test Shop', amount, payText(language), 'shop.example.com']) {
            expect(await page.getByText(text, { exact: true }).first().isVisible(), text).toBe(true);
          }
          await expectFits(page);
          if (isCheckedByAxe(language)) await expectAccessible(page);
        }
      });
      expect(loaded).toEqual([]);
    },
  );

  test.each(visitedLanguages)(
    'the page of a test order in %s is complete and fits in every state, and in English it is accessible',
    async (language) => {
      const texts = pageTexts[language];
      const badges = { UN_PAID: null, PAID: texts.paid, EXPIRED: texts.expired, CANCELLED: texts.cancelled };
      // The colours of a state are the same in every language, so only the English pages are shown in every view.
      const viewsOf = (index: number) => (language === 'en' ? views : views.slice(index % 2, (index % 2) + 1));
      for (const [index, status] of orderStatuses.entries()) {
        const order = await newTestLink({ order_note: hostileNote, order_expires_at: tomorrow() });
        await moveTo[status](order);
        await visit(order.payment_link, { language }, async (page) => {
          expect(await page.textContent('.test')).toBe(texts.testMode);
          expect(await page.locator('.status').allTextContents()).toEqual([badges[status] ?? []].flat());
          const buttons = status === 'UN_PAID' ? [texts.simulate, texts.simulateDecline] : [];
          expect(await page.locator('button.button').allTextContents()).toEqual(buttons);
          expect(await page.locator('time').count()).toBe(1);
          if (status === 'UN_PAID') {
            for (const view of viewsOf(index)) {
              await showIn(page, view);
              await expectFits(page);
            }
            await page.getByText(texts.simulateDecline).click();
            expect(await page.textContent('[role=status]')).toBe(texts.declined);
          }
          for (const view of viewsOf(index)) {
            await showIn(page, view);
            await expectFits(page);
            if (language === 'en') await expectAccessible(page);
          }
        });
      }
    },
  );

  test.each([
    ['USD', 'US$ 48.50'],
    ['CAD', 'CA$ 48.50'],
    ['EUR', '€ 48.50'],
  ])('in Arabic, an amount in %s is displayed as %s, from left to right', async (code, shown) => {
    const { payment_link } = await newLink({ order_amount: 48.5, order_currency: code });
    await visit(payment_link, { language: 'ar' }, async (page) => {
      expect(await page.evaluate(`(${visualText})('.amount bdi')`)).toBe(shown);
    });
  });

  test.each(visitedLanguages)('404 in %s: the page fits and is accessible', async (language) => {
    const address = `${gateway.url}/payment/unknown`;
    await visit(address, { language }, async (page) => {
      expect(await page.textContent('h1')).toBe(pageTexts[language].unknownTitle);
      expect(await page.getAttribute('html', 'lang')).toBe(language);
      await expectFits(page);
      if (isCheckedByAxe(language)) await expectAccessible(page);
    });
  });

  test('shows markup in a note as text: no script runs, and directions stay isolated', async () => {
    const { payment_link } = await newLink({ order_note: hostileNote, order_id: `\u202e${'<b>'.repeat(40)}` });
    const loaded = await visit(payment_link, {}, async (page) => {
      expect(await page.textContent('.note')).toBe(hostileNote);
      expect(await page.title()).not.toBe('run');
      expect(await page.evaluate("document.querySelectorAll('main script, main img:not(.qr), main b').length")).toBe(0);
      const isolation = await page.evaluate(
        "[...document.querySelectorAll('bdi')].map((bdi) => getComputedStyle(bdi).unicodeBidi)",
      );
      expect(new Set(Array.isArray(isolation) ? isolation : [])).toEqual(new Set(['isolate']));
      await expectFits(page);
    });
    expect(loaded).toEqual([]);
  });

  test('Pay is on the first screen of a small phone, with any note in each language', async () => {
    const unfolded = 'TWO bags of coffee, '.repeat(6);
    const notes = [
      hostileNote,
      '\n'.repeat(1_000),
      unfolded,
      'x\nx\nx\nx',
      'W W '.repeat(250),
      `x${'\u0301'.repeat(999)}`,
    ];
    const bottomsOf = async (note: string, languages: readonly PageLanguage[]) => {
      const order = { order_note: `x${note.slice(1)}`, order_expires_at: tomorrow() };
      const bottoms: number[] = [];
      for (const { payment_link } of [await newLink(order), await newTestLink(order)])
        for (const language of languages)
          await visit(payment_link, { language, viewport: phone }, async (page) => {
            const bottom = await page.evaluate("document.querySelector('.button.main').getBoundingClientRect().bottom");
            expect(bottom, `${language} ${JSON.stringify(note)}`).toBeLessThanOrEqual(phone.height);
            bottoms.push(Number(bottom));
          });
      return Math.max(...bottoms);
    };
    const [language, ...otherLanguages] = visitedLanguages;
    const bottoms: [bottom: number, note: string][] = [];
    for (const note of notes) bottoms.push([await bottomsOf(note, [language ?? 'en']), note]);
    // A note is as high in every language, so the other languages are shown with the highest one.
    const [[, highest] = [0, '']] = bottoms.toSorted(([a], [b]) => b - a);
    await bottomsOf(highest, otherLanguages);
  });

  test('the customer can choose a language, and a simulated payment keeps it', async () => {
    const { payment_link } = await newTestLink();
    await visit(payment_link, { hasScript: false, language: 'fr' }, async (page) => {
      const languageOfPage = () => page.getAttribute('html', 'lang');
      const choose = async (name: string) => {
        await page.locator('.languages summary').click();
        await expectFits(page);
        await page.getByRole('link', { name, exact: true }).click();
      };
      await choose('Русский');
      await page.waitForURL(`${payment_link}?lang=ru`);
      expect(await languageOfPage()).toBe('ru');
      await page.getByText(pageTexts.ru.simulateDecline).click();
      expect([await languageOfPage(), await page.textContent('[role=status]')]).toEqual(['ru', pageTexts.ru.declined]);
      await choose('English');
      await page.waitForURL(`${payment_link}?lang=en`);
      expect(await languageOfPage()).toBe('en');
    });
  });

  describe('at an address that phones can open', () => {
    test('a QR code of the link is loaded and shown on wide screens only', async () => {
      const { payment_link, address } = await newPublicLink();
      await visit(address, {}, async (page) => {
        const qrCode = page.locator('.qr');
        expect(await qrCode.isVisible()).toBe(false);
        expect(await page.evaluate("document.querySelector('.qr').complete")).toBe(false);
        await showIn(page, { viewport: desktop, colorScheme: 'dark' });
        await expect.poll(() => page.evaluate("document.querySelector('.qr').naturalWidth")).toBeGreaterThan(0);
        expect(await qrCode.isVisible()).toBe(true);
        await expectAccessible(page);
        const photo = await qrCode.screenshot({ scale: 'css' });
        const pixels = (await page.evaluate(`(${pixelsOf})('${photo.toString('base64')}')`)) as Pixels;
        expect(jsqr.default(Uint8ClampedArray.from(pixels.data), pixels.width, pixels.height)?.data).toBe(payment_link);
      });
    });

    test('the complete page fits on a laptop screen in each language', async () => {
      const { address } = await newPublicLink({ order_expires_at: tomorrow() });
      const tooLong: string[] = [];
      await visit(address, { hasScript: false, viewport: desktop }, async (page) => {
        for (const language of visitedLanguages) {
          await page.goto(`${address}?lang=${language}`);
          expect(await page.locator('.qr').isVisible()).toBe(true);
          const bottom = Number(await page.evaluate("document.querySelector('main').getBoundingClientRect().bottom"));
          if (bottom > desktop.height) tooLong.push(`${language} ${bottom}`);
        }
      });
      expect(tooLong).toEqual([]);
    });
  });

  test('no QR code is shown for a local address, which phones cannot open', async () => {
    const { payment_link } = await newLink();
    await visit(payment_link, { viewport: desktop }, async (page) => {
      expect(await page.getByText(pageTexts.en.scan).count()).toBe(0);
      expect(await page.locator('.qr').count()).toBe(0);
    });
  });

  test.each(['PAID', 'UN_PAID'] as const)(
    'GET /demo/return of an order that is %s: the page fits, is accessible and loads nothing',
    async (status) => {
      const { clientId, clientSecret } = gateway.demo ?? { clientId: '', clientSecret: '' };
      const order = { order_id: `${status}-${'W'.repeat(120)}`, return_url: `${gateway.baseUrl}/demo/return` };
      const merchant = { url: gateway.url, credentials: { clientId, clientSecret } };
      const { payment_link } = await createOrder(merchant, order.order_id, order);
      await visit(payment_link, { hasScript: false }, async (page) => {
        if (status === 'PAID') await page.getByText(pageTexts.en.simulate, { exact: true }).click();
        else await page.locator('.back').click();
        await page.waitForURL(`${gateway.baseUrl}/demo/return?**`);
        expect(await page.locator('.status').allTextContents()).toEqual(['Valid', status]);
      });
      const signed = await fetch(payment_link, { headers: { accept: 'application/json' } });
      const { return_url } = Object(await signed.json());
      await expectLayout(String(return_url));
    },
  );

  test('GET /demo/return without a signature: the page fits, is accessible and loads nothing', async () => {
    await expectLayout(`${gateway.baseUrl}/demo/return?order_id=${'W'.repeat(128)}&order_status=PAID`);
  });

  test.each(orderStatuses)(
    'an order that is %s is printed on one page, in black on white and without buttons',
    async (status) => {
      // The note is printed in the same way in every state, so each is printed in two of them.
      const order_note = status === 'UN_PAID' || status === 'EXPIRED' ? hostileNote : `x${'\n'.repeat(998)}x`;
      const order = await newTestLink({ order_note });
      await moveTo[status](order);
      await visit(order.payment_link, { colorScheme: 'dark', viewport: desktop }, async (page) => {
        await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
        expect(await page.evaluate(coloursOfPrint)).toEqual(['rgb(0, 0, 0)', 'rgb(255, 255, 255)']);
        expect(await page.locator('a:visible, button:visible, summary :visible:not(.label)').count()).toBe(0);
        expect(await page.locator('.note').isVisible()).toBe(true);
        const pdf = await page.pdf({ format: 'A4' });
        expect(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
      });
    },
  );

  test('the keyboard opens and closes a long note', async () => {
    const { payment_link } = await newLink({ order_note: hostileNote });
    await visit(payment_link, { hasScript: false }, async (page) => {
      const note = page.locator('.note');
      expect(await note.isVisible()).toBe(false);
      for (const isOpen of [true, false]) {
        await page.locator('summary').first().press('Enter');
        expect([await note.isVisible(), await page.locator('.beginning').isVisible()]).toEqual([isOpen, !isOpen]);
      }
    });
  });

  test('fits with the largest amount and the longest names in each language', async () => {
    for (const language of visitedLanguages) {
      const { payment_link } = await newLink({
        order_amount: 9_999_999_999_999.99,
        order_currency: language === 'ar' ? 'KWD' : 'INR',
        order_id: language + 'W'.repeat(126),
        return_url: `https://${'w'.repeat(60)}.${'w'.repeat(60)}.example.com/`,
      });
      await visit(payment_link, { language }, expectFits);
    }
  });

  test('works without JavaScript, and its links never send the token to the merchant', async () => {
    const returnUrl = 'https://shop.example.com/back?cart=5#top';
    const { payment_link, order_token, service_order_id } = await newLink({ order_id: 'back', return_url: returnUrl });
    const requests: { url: string; referer: string | undefined }[] = [];
    await visit(payment_link, { hasScript: false }, async (page) => {
      await page.route(/example\.com/, async (route) => {
        const headers = await route.request().allHeaders();
        requests.push({ url: route.request().url(), referer: headers.referer });
        await route.fulfill({ status: 200, contentType: 'text/plain', body: 'page' });
      });
      await page.locator('.back').click();
      await page.waitForURL(/shop\.example\.com/);
      await page.goBack();
      await page.getByText(payText('en'), { exact: true }).click();
      await page.waitForURL(/checkout\.example\.com/);
    });
    const returnUrlWithStatus = `https://shop.example.com/back?cart=5&order_id=back&service_order_id=${service_order_id}&order_status=UN_PAID`;
    expect(requests.map(({ url }) => url.split('#')[0])).toEqual([
      returnUrlWithStatus,
      `https://checkout.example.com/${order_token}`,
    ]);
    expect(requests.map(({ referer }) => referer)).toEqual([undefined, undefined]);
  });

  test('works with the keyboard alone and shows the focus', async () => {
    const { payment_link } = await newLink();
    await visit(payment_link, { viewport: desktop }, async (page) => {
      for (const text of [payText('en'), 'Back to shop.example.com']) {
        await page.keyboard.press('Tab');
        expect(await page.evaluate('document.activeElement.textContent')).toBe(text);
        expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
      }
    });
  });

  test.each(['/', '/docs/creating-orders', '/docs/errors'])(
    'GET %s: the page fits, is accessible and loads nothing',
    (path) => expectLayout(gateway.url + path),
  );
});

/** Runs in the browser: returns the characters of an element from left to right, as displayed. */
const visualText = `(selector) => {
  const text = document.querySelector(selector).firstChild;
  const range = document.createRange();
  return [...text.data].map((character, index) => {
    range.setStart(text, index);
    range.setEnd(text, index + 1);
    return { character, box: range.getBoundingClientRect() };
  }).filter(({ box }) => box.width > 0).sort((a, b) => a.box.left - b.box.left)
    .map(({ character }) => character.replace('\\u00a0', ' ')).join('');
}`;

/** Runs in the browser: returns the colours of all text, and of all backgrounds that are not transparent. */
const coloursOfPrint = `(() => {
  const styles = [...document.querySelectorAll('body, body *')]
    .filter((element) => element.checkVisibility())
    .map((element) => getComputedStyle(element));
  const backgrounds = styles.map(({ backgroundColor }) => backgroundColor).filter((colour) => colour !== 'rgba(0, 0, 0, 0)');
  return [...new Set(styles.map(({ color }) => color)), ...new Set(backgrounds)];
})()`;

interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: readonly number[];
}

/** Runs in the browser: decodes a PNG. It uses a blob because the page's Content-Security-Policy blocks every load. */
const pixelsOf = `async (base64) => {
  const bitmap = await createImageBitmap(new Blob([Uint8Array.fromBase64(base64)], { type: 'image/png' }));
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext('2d');
  context.drawImage(bitmap, 0, 0);
  return { width, height, data: [...context.getImageData(0, 0, width, height).data] };
}`;

function tomorrow(): string {
  return new Date(Date.now() + 86_400_000).toISOString();
}
