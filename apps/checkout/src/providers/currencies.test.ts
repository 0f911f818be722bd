import { formatAmount, minorUnitOf, orderCurrencyCodes, parseAmount } from '@order-gateway/domain/money';
import { expect, test } from 'vitest';
import type { Attempt } from '../store/store.ts';
import { createMollieProvider } from './mollie/mollie.ts';
import { fromStripeUnits, stripeDecimals, stripeRange, stripeUnits } from './stripe/currencies.ts';

/** Returns amounts with a number of decimals: the smallest step, one with all digits, and the largest. */
function amountsOf(decimals: number, max: bigint): bigint[] {
  const step = 10n ** BigInt(2 - Math.min(decimals, 2));
  return [step, 1_234_567n - (1_234_567n % step), max - (max % step)];
}

test('Mollie gets the exact amount in each currency of the gateway that it accepts for cards', async () => {
  const [card] = createMollieProvider(async () => new Response()).methods;
  const taken = orderCurrencyCodes.filter((currency) => card?.decimals(currency) !== undefined);
  expect(taken.length).toBeGreaterThan(25);
  for (const currency of taken) {
    const decimals = card?.decimals(currency) ?? 0;
    expect([currency, decimals]).toEqual([currency, minorUnitOf(currency)]);
    for (const amount of amountsOf(decimals, card?.range(currency)[1] ?? 0n)) {
      const provider = createMollieProvider(async () => Response.json(payment));
      const attempt = {
        ...({ attemptId: 'att', orderId: 'o', serviceOrderId: 1, connectionId: 'con', method: 'card' } as const),
        ...({ locale: 'en', amountHundredths: amount, currency } as const),
      } as Attempt;
      const request = provider.open.request(attempt, { backUrl: 'http://localhost/back/att' });
      const { amount: asked } = request as { readonly amount: { readonly currency: string; readonly value: string } };
      expect(asked).toEqual({ currency, value: expect.stringMatching(decimals === 0 ? /^\d+$/ : /^\d+\.\d\d$/) });
      expect(parseAmount(asked.value)).toMatchObject({ value: amount });
      const payment = { id: 'tr_1', status: 'paid', amount: asked, createdAt: '2026-11-28T00:00:00Z' };
      expect(await provider.look(undefined, 'tr_1')).toMatchObject({ is: 'captured', amount, currency });
    }
  }
});

test('Stripe gets the exact amount in each currency of the gateway that it accepts', () => {
  const taken = orderCurrencyCodes.filter((currency) => stripeDecimals(currency) !== undefined);
  expect(taken.length).toBeGreaterThan(130);
  for (const currency of taken) {
    const decimals = stripeDecimals(currency) ?? 0;
    const [, max] = stripeRange(currency);
    for (const amount of amountsOf(decimals, max)) {
      const units = stripeUnits(amount, currency);
      expect([currency, fromStripeUnits(units, currency)]).toEqual([currency, amount]);
      expect(units, `${currency} ${formatAmount(max as Parameters<typeof formatAmount>[0])}`).toBeLessThan(100_000_000);
    }
  }
  const units = ['EUR', 'JPY', 'ISK', 'UGX', 'MGA', 'BHD'].map((currency) => stripeUnits(100_000n, currency));
  expect(units).toEqual([100_000, 1_000, 100_000, 100_000, 1_000, 1_000_000]);
});
