import { type AccountId, type MerchantMode, merchantModes, noBrand } from '@order-gateway/domain/accounts';
import { type BaseUrl, parseBaseUrl, parseCheckoutTemplate } from '@order-gateway/domain/links';
import type { AmountHundredths } from '@order-gateway/domain/money';
import { type LinkedOrder, type Order, type OrderStatus, orderStatuses } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { localAmount, type PageTexts, pageLanguages, pageTexts } from '@order-gateway/pages/localization';
import { describe, expect, test } from 'vitest';
import { fixedDeps } from '../../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../../test/helpers/memory-logger.ts';
import { formTargets, pagePath, paymentJson, paymentPage } from './payment-page.ts';

test.each([
  [
    'en',
    'Pay within <bdi><span data-left-ms="560000">9 minutes</span></bdi> (until <bdi><time>2:22 PM</time></bdi>, UTC)',
  ],
  [
    'en-GB',
    'Pay within <bdi><span data-left-ms="560000">9 minutes</span></bdi> (until <bdi><time>14:22</time></bdi>, UTC)',
  ],
  [
    'de',
    'Noch <bdi><span data-left-ms="560000">9 Minuten</span></bdi> zahlbar (bis <bdi><time>14:22</time></bdi>, UTC)',
  ],
] as const)('the page in %s says for how long the order can be paid', async (locale, sentence) => {
  const { order, merchant } = linkTo('UN_PAID', 'live');
  const page = await paymentPage(deps, { order: { ...order, expiresAtMs: deps.now() + 560_000 }, merchant }, locale);
  expect(page.replaceAll(/ datetime="[^"]*"/g, '').replaceAll('\u202f', ' ')).toContain(`<p>${sentence}</p>`);
});

const deps = {
  ...fixedDeps(createMemoryLogger().logger),
  baseUrl: () => parseBaseUrl('https://pay.test/eu') as BaseUrl,
  lateDays: () => 1,
};
const withCheckout = { ...deps, checkoutTemplate: parseCheckoutTemplate('https://checkout.test/{order_token}') };

const expiresAtMs = Date.UTC(2026, 11, 1, 12);
const paidAtMs = Date.UTC(2026, 10, 30, 8, 30);
const cancelledAtMs = Date.UTC(2026, 10, 29, 9);

/** For each status, the state of the order, the names of the texts on the page, and the time that it shows. */
const shownFor: Record<OrderStatus, { state: Partial<Order>; texts: (keyof PageTexts)[]; time: string }> = {
  UN_PAID: { state: {}, texts: [], time: '2026-12-01T12:00:00.000+00:00' },
  PAID: {
    state: { payment: { checkoutId: null, paymentId: 'pay-1', paidAtMs } },
    texts: ['paid', 'paidOn', 'paidText', 'paymentId'],
    time: '2026-11-30T08:30:00.000+00:00',
  },
  EXPIRED: {
    state: {},
    texts: ['expired', 'expiredOn', 'expiredText'],
    time: '2026-12-01T12:00:00.000+00:00',
  },
  CANCELLED: {
    state: { cancelledAtMs },
    texts: ['cancelled', 'cancelledOn', 'cancelledText'],
    time: '2026-11-29T09:00:00.000+00:00',
  },
};

function linkTo(orderStatus: OrderStatus, mode: MerchantMode): LinkedOrder {
  const order = { ...sampleOrder(1 as AccountId), expiresAtMs, ...shownFor[orderStatus].state, orderStatus };
  return {
    order,
    merchant: { clientId: 'app_1', name: 'Shop', mode, isDisabled: false, returnSecrets: [], brand: null },
  };
}

const cases = pageLanguages.flatMap((language) =>
  merchantModes.flatMap((mode) => orderStatuses.map((status) => [status, mode, language] as const)),
);

describe.each(cases)('the page of a %s order in %s mode, in the language %s', (status, mode, language) => {
  const link = linkTo(status, mode);
  const { orderToken } = link.order;
  const texts = pageTexts[language];

  test('shows the state with its time', async () => {
    const page = await paymentPage(deps, link, language);
    const { texts: shown, time } = shownFor[status];
    for (const name of shown) expect(page).toContain(texts[name].replace('{merchant}', '<bdi>Shop</bdi>'));
    const times = [...page.matchAll(/ datetime="([^"]+)"/g)].map(([, at]) => at);
    expect(times).toEqual([time]);
    expect(page.includes('<bdi>pay-1</bdi>')).toBe(status === 'PAID');
    expect(page.includes(texts.testMode)).toBe(mode === 'test');
    expect(page).not.toContain(texts.declined);
    expect(await paymentPage(deps, link, language, 'declined')).toContain(texts.declined);
  });

  test('has a Pay button only while the order can be paid', async () => {
    for (const pageDeps of [deps, withCheckout]) {
      const page = await paymentPage(pageDeps, link, language);
      const isPayable = status === 'UN_PAID';
      const hasCheckout = isPayable && pageDeps === withCheckout;
      const hasForm = isPayable && mode === 'test';
      const payText = texts.pay.replace(
        '{amount}',
        `<bdi>${localAmount(link.order.fields.order_amount, 'EUR', language)}</bdi>`,
      );
      expect(page.includes(`>${payText}</a>`)).toBe(hasCheckout && !hasForm);
      expect(page.includes(`>${texts.openCheckout}</`)).toBe(hasCheckout && hasForm);
      expect(page.includes(`>${texts.simulate}</`)).toBe(hasForm);
      expect(page.includes(`>${texts.simulateDecline}</`)).toBe(hasForm);
      expect(page.includes('https://checkout.test/')).toBe(hasCheckout);
      expect(formTargets(pageDeps, link)).toBe(hasForm ? "'self' http: https:" : undefined);
      expect(page.includes('<meta name="referrer" content="same-origin">')).toBe(hasForm);
      expect(page.includes(orderToken)).toBe(hasCheckout || hasForm);
      expect([...page.matchAll(/<form[^>]*>|<button class="button[^>]*>/g)].map(([tag]) => tag)).toEqual(
        hasForm
          ? [
              `<form class="actions" method="post" action="/eu/payment/${orderToken}/simulate">`,
              `<button class="button${hasCheckout ? '' : ' main'}" name="outcome" value="pay">`,
              '<button class="button" name="outcome" value="decline">',
            ]
          : [],
      );
      expect(page.includes(texts.notPayableHere.replace('{merchant}', '<bdi>Shop</bdi>'))).toBe(
        isPayable && !hasCheckout && !hasForm,
      );
      const qrCode = `<img class="qr" src="/eu/payment/${orderToken}/qr.svg" loading="lazy" alt="">`;
      expect([page.includes(qrCode), page.includes(texts.scan)]).toEqual(
        hasCheckout || hasForm ? [true, true] : [false, false],
      );
      expect([...page.matchAll(/class="button main"/g)]).toHaveLength(isPayable && (hasCheckout || hasForm) ? 1 : 0);
    }
  });

  test('shows the merchant first, then the amount, and the return link last', async () => {
    const page = await paymentPage(deps, link, language);
    const title = texts.title.replace('{merchant}', 'Shop');
    expect(page).toContain(
      `<meta property="og:title" content="${title}">\n<meta property="og:site_name" content="Shop">`,
    );
    expect(page).toContain(`<title>${status === 'UN_PAID' ? title : ''}`);
    const amount = localAmount(link.order.fields.order_amount, 'EUR', language);
    const shown = ['<h1><bdi>Shop</bdi></h1>', amount, link.order.fields.order_note, 'class="actions"', 'class="back"'];
    expect(shown.map((part) => page.split(part).length)).toEqual([2, 2, 2, expect.toBeOneOf([2, 3]), 2]);
    expect(shown.map((part) => page.indexOf(part))).toEqual(
      shown.map((part) => page.indexOf(part)).toSorted((a, b) => a - b),
    );
    expect(page).toContain(texts.back.replace('{host}', '<bdi>shop.example.com</bdi>'));
  });
});

describe('with CHECKOUT_METHOD=post', () => {
  const posting = { ...withCheckout, checkoutMethod: 'post' } as const;

  test.each(merchantModes)('the Pay button of a %s order sends a form to the checkout', async (mode) => {
    const link = linkTo('UN_PAID', mode);
    const page = await paymentPage(posting, link, 'en');
    const label = mode === 'test' ? 'Open the checkout' : 'Pay <bdi>€1,249.50</bdi>';
    expect(page).toContain(
      `<form method="post" action="https://checkout.test/${link.order.orderToken}"><button class="button main">${label}</button></form>`,
    );
    expect(page).not.toContain('href="https://checkout.test/');
    expect(page).toContain('<meta name="referrer" content="strict-origin">');
    expect([...page.matchAll(/class="button main"/g)]).toHaveLength(1);
  });

  test('the page of a test order offers the test payments of the checkout only, in the chosen language', async () => {
    const page = await paymentPage(posting, linkTo('UN_PAID', 'test'), 'de', undefined, { chosen: 'de' });
    expect([...page.matchAll(/<form/g)]).toHaveLength(1);
    expect(page).toContain('<input type="hidden" name="lang" value="de">');
    const withoutCheckout = { ...posting, checkoutTemplate: undefined };
    expect(await paymentPage(withoutCheckout, linkTo('UN_PAID', 'test'), 'en')).toContain('/simulate"');
  });

  test.each([
    ['https://checkout.test/{order_token}', 'https://checkout.test'],
    ['http://localhost:8081/pay?token={order_token}', 'http://localhost:8081'],
  ])('the form of a live order may lead to the checkout %s and from there to https', (template, origin) => {
    const checkoutTemplate = parseCheckoutTemplate(template);
    const link = linkTo('UN_PAID', 'live');
    expect(formTargets({ ...posting, checkoutTemplate }, link)).toBe(`'self' ${origin} https:`);
    expect(formTargets({ ...posting, checkoutTemplate: undefined }, link)).toBeUndefined();
    expect(formTargets({ ...posting, checkoutTemplate }, linkTo('PAID', 'live'))).toBeUndefined();
  });
});

test('the page links to itself in every language, and its form keeps the chosen language', async () => {
  const linksOf = (page: string) => [...page.matchAll(/<a href="([^"]*)" lang="([^"]*)"( aria-current="true")?>/g)];
  const link = linkTo('UN_PAID', 'test');
  const page = await paymentPage(deps, link, 'de-CH');
  expect(linksOf(page).map(([, href, lang, current]) => [href, lang, current !== undefined])).toEqual(
    pageLanguages.map((language) => [`?lang=${language}`, language, language === 'de']),
  );
  expect(page).toContain('/simulate">');
  const path = pagePath(deps, link);
  const declined = await paymentPage(deps, link, 'de', 'declined', { path, chosen: 'de' });
  expect(linksOf(declined)[0]?.[1]).toBe(`/eu/payment/${link.order.orderToken}?lang=en`);
  expect(declined).toContain(`action="${path}/simulate?lang=de"`);
});

test.each([
  ['Blue Bottle Roasters', 'B'],
  ['éclair', 'É'],
  ['"7 Days"', '7'],
  ['喫茶店', '喫'],
  ['مقهى', 'م'],
  ['🥐🥐', '🥐'],
])('the monogram of %s is %s', async (name, monogram) => {
  const { order, merchant } = linkTo('UN_PAID', 'live');
  const page = await paymentPage(deps, { order, merchant: { ...merchant, name } }, 'en');
  expect(page).toContain(`<span class="monogram" aria-hidden="true">${monogram}</span>`);
});

describe('a note', () => {
  const pageWith = (order_note: string) => {
    const { order, merchant } = linkTo('UN_PAID', 'live');
    return paymentPage(deps, { order: { ...order, fields: { ...order.fields, order_note } }, merchant }, 'en');
  };

  test.each(['x', 'x'.repeat(120), '👨‍👩‍👧'.repeat(24), 'a\n\nb\nc'])(
    'that is short is shown completely: %j',
    async (note) => {
      const page = await pageWith(note);
      expect(page).toContain(`<bdi class="note">${note}</bdi>`);
      expect(page).not.toContain('class="beginning"');
    },
  );

  test.each([
    ['x'.repeat(121), 'x'.repeat(60)],
    ['a\n\tb \n c\n\nd', 'a b c d'],
    // An emoji of 8 code units, which is shown completely or not at all.
    ['x'.repeat(55) + '👨‍👩‍👧'.repeat(14), 'x'.repeat(55)],
    [`x\u0301${'\u0301'.repeat(120)}`, ''],
  ])('that is long is shown folded, after its beginning: %j', async (note, beginning) => {
    const page = await pageWith(note);
    expect(page).toContain(`<bdi class="beginning">${beginning}…</bdi>`);
    expect(page).toContain(`<p class="note"><bdi>${note}</bdi></p>`);
  });
});

test.each(pageLanguages)(
  'the page in %s says until when a payment is in progress, and offers only to continue it',
  async (language) => {
    const texts = pageTexts[language];
    for (const mode of merchantModes) {
      const link = linkTo('UN_PAID', mode);
      const lease = { checkoutId: 2 as AccountId, attemptId: 'a-1', endsAtMs: expiresAtMs, isLive: true };
      const inProgress = { ...link, order: { ...link.order, lease } };
      const page = await paymentPage(withCheckout, inProgress, language);
      const url = `https://checkout.test/${link.order.orderToken}`;
      expect(page).toContain(texts.inProgressText);
      expect(page).toContain(`${texts.waitsUntil}</span> <bdi><time datetime="2026-12-01T12:00:00.000+00:00"`);
      expect(page).toContain(`<a class="button main" href="${url}">${texts.continue}</a>`);
      expect(page).not.toMatch(/<form|<button class="button/);
      expect(page).not.toContain(texts.finishText);
      const posted = await paymentPage({ ...withCheckout, checkoutMethod: 'post' }, inProgress, language);
      expect(posted).toContain(`action="${url}"><button class="button main">${texts.continue}</button>`);
      const without = await paymentPage(deps, inProgress, language);
      expect(without).toContain(texts.finishText);
      expect(without).not.toMatch(/<form|<button|class="button/);
      expect(JSON.parse(paymentJson(withCheckout, inProgress))).toMatchObject({
        checkout_url: url,
        payment_in_progress_until: '2026-12-01T12:00:00.000+00:00',
      });
      const ended = { ...link, order: { ...link.order, lease: { ...lease, isLive: false } } };
      expect(await paymentPage(withCheckout, ended, language)).toBe(await paymentPage(withCheckout, link, language));
    }
  },
);

describe.each(pageLanguages)('the page in %s of an order with a refused payment', (language) => {
  const texts = pageTexts[language];
  const owed = texts.owedText.replace('{merchant}', '<bdi>Shop</bdi>');
  const refused = { checkoutId: 2 as AccountId, paymentId: 'less', paidAtMs, amount: 124949n as AmountHundredths };
  const refusedPayments = [{ ...refused, currency: 'EUR', code: 'payment_mismatch', refusedAtMs: paidAtMs }] as const;
  const refusedLink = (status: OrderStatus) => {
    const link = linkTo(status, 'live');
    return { ...link, order: { ...link.order, refusedPayments } };
  };

  test.each(orderStatuses)('says that the customer must get the money back, after the status %s', async (status) => {
    const page = await paymentPage(withCheckout, refusedLink(status), language);
    expect(page).toContain(`<p class="owed">${owed}</p>`);
    const { texts: shown } = shownFor[status];
    for (const name of shown) {
      const at = page.indexOf(texts[name].replace('{merchant}', '<bdi>Shop</bdi>'));
      if (name === 'expiredText') expect(at).toBe(-1);
      else expect(at).toBeGreaterThan(-1);
    }
    if (status === 'PAID') expect(page.indexOf(`>${texts.paid}<`)).toBeLessThan(page.indexOf(owed));
  });

  test('no longer says so once the whole amount has been refunded', async () => {
    const { checkoutId, paymentId } = refused;
    const refund = { checkoutId, paymentId, reporterId: checkoutId, currency: 'EUR', note: null };
    const history = [{ status: 'SUCCEEDED', atMs: paidAtMs, reason: null }] as const;
    const parts = [100_000n, 24949n].map((amount, index) => {
      const refundId = `re_${index}`;
      const ids = { refundId, providerRefundId: refundId };
      return { ...refund, ...ids, amount: amount as AmountHundredths, history, refundedAtMs: paidAtMs };
    });
    const refundedLink = (refunds: typeof parts) => {
      const link = refusedLink('EXPIRED');
      return { ...link, order: { ...link.order, reversals: { version: refunds.length, refunds, disputes: [] } } };
    };
    expect(await paymentPage(withCheckout, refundedLink(parts.slice(1)), language)).toContain('class="owed"');
    const page = await paymentPage(withCheckout, refundedLink(parts), language);
    expect(page).not.toContain('class="owed"');
    expect(page).toContain(texts.expiredText.replace('{merchant}', '<bdi>Shop</bdi>'));
  });

  test('leaves an unpaid order payable below the notice', async () => {
    const page = await paymentPage(withCheckout, refusedLink('UN_PAID'), language);
    const button = page.indexOf('class="button main"');
    expect(button).toBeGreaterThan(page.indexOf(owed));
    expect(JSON.parse(paymentJson(withCheckout, refusedLink('UN_PAID')))).toMatchObject({
      checkout_url: expect.any(String),
      refused_payments: [{ payment_id: 'less', amount: 1249.49, code: 'payment_mismatch' }],
    });
    expect(await paymentPage(withCheckout, linkTo('UN_PAID', 'live'), language)).not.toContain('class="owed"');
  });
});

describe.each(pageLanguages)('the page in %s of a merchant with payment instructions', (language) => {
  const texts = pageTexts[language];
  const payment_instructions = 'Transfer to\nDE75 5121 0800 1245 1261 99';
  const shown = `<p class="note"><bdi>${payment_instructions}</bdi></p>`;
  const linkWith = (status: OrderStatus, mode: MerchantMode, order: Partial<Order> = {}): LinkedOrder => {
    const link = linkTo(status, mode);
    const brand = { ...noBrand, payment_instructions };
    return { order: { ...link.order, ...order }, merchant: { ...link.merchant, brand } };
  };

  test('shows them in place of a Pay button, and otherwise folded', async () => {
    const unfolded = await paymentPage(deps, linkWith('UN_PAID', 'live'), language);
    expect(unfolded).toContain(`<div><p class="label">${texts.howToPay}</p>${shown}</div>`);
    expect(unfolded).not.toContain(texts.notPayableHere.replace('{merchant}', '<bdi>Shop</bdi>'));
    for (const [pageDeps, mode] of [
      [withCheckout, 'live'],
      [deps, 'test'],
    ] as const) {
      const page = await paymentPage(pageDeps, linkWith('UN_PAID', mode), language);
      expect(page).toContain(`<details><summary>${texts.otherWays}</summary>${shown}</details>`);
      expect(page).not.toContain(`>${texts.howToPay}<`);
    }
  });

  test('shows them only while a payment may start', async () => {
    const lease = { checkoutId: 2 as AccountId, attemptId: 'a-1', endsAtMs: expiresAtMs, isLive: true };
    const { order, merchant } = linkWith('UN_PAID', 'live');
    const closed = [
      ...(['PAID', 'EXPIRED', 'CANCELLED'] as const).map((status) => linkWith(status, 'live')),
      linkWith('UN_PAID', 'live', { lease }),
      { order, merchant: { ...merchant, isDisabled: true } },
    ];
    for (const link of closed) {
      for (const pageDeps of [deps, withCheckout]) {
        expect(await paymentPage(pageDeps, link, language)).not.toContain('DE75');
      }
    }
  });
});

test.each(orderStatuses)(
  'the JSON of an order that is %s contains its times and, if it can be paid, the URL of the checkout',
  (status) => {
    const parsed = (mode: MerchantMode) => JSON.parse(paymentJson(withCheckout, linkTo(status, mode)));
    const times = {
      order_expires_at: '2026-12-01T12:00:00.000+00:00',
      paid_at: status === 'PAID' ? '2026-11-30T08:30:00.000+00:00' : undefined,
      payment_id: status === 'PAID' ? 'pay-1' : undefined,
      cancelled_at: status === 'CANCELLED' ? '2026-11-29T09:00:00.000+00:00' : undefined,
    };
    const checkoutUrl = status === 'UN_PAID' ? expect.stringMatching(/^https:\/\/checkout\.test\/\w{32}$/) : null;
    expect(parsed('live')).toMatchObject({ mode: 'live', order_status: status, checkout_url: checkoutUrl });
    expect(parsed('test')).toMatchObject({ mode: 'test', order_status: status, checkout_url: checkoutUrl });
    expect(parsed('live')).toEqual(expect.objectContaining(JSON.parse(JSON.stringify(times))));
  },
);

test('every language translates every text, with the same placeholders', () => {
  const placeholdersOf = (text: string | undefined) => text?.match(/\{\w+\}/g);
  for (const language of pageLanguages) {
    expect(Object.keys(pageTexts[language])).toEqual(Object.keys(pageTexts.en));
    for (const [name, text] of Object.entries(pageTexts[language])) {
      expect(text.trim(), `${language} ${name}`).not.toBe('');
      expect(placeholdersOf(text)).toEqual(placeholdersOf(new Map(Object.entries(pageTexts.en)).get(name)));
      if (language === 'en') continue;
      expect(Object.values(pageTexts.en), `${language} ${name}`).not.toContain(text);
    }
  }
});
