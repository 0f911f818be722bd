import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { orderCurrencyCodes } from '../money/currency.ts';
import { formatAmount, NumberText } from '../money/money.ts';
import { parseOrder } from '../orders/parse-order.ts';
import { type PaymentInput, parseAttempt, parseManualPayment, parsePayment } from './parse-payment.ts';

const valid = {
  order_token: 'a token',
  payment_id: 'p-1',
  paid_at: '2026-11-20T21:01:42.172Z',
  order_amount: new NumberText('10.00'),
  order_currency: 'EUR',
};

/** Any value, often one that is nearly valid. */
const anyValue = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withMap: true }),
  fc.string({ unit: 'binary' }),
  fc.string().map((text) => new NumberText(text)),
  fc.constantFrom(...Object.values(valid), '', null, undefined, Number.NaN, 10, '10', 'usd', '0001-01-01T00:00:00Z'),
);

// The fixtures state the rule of each field, and packages/fixtures/src/parse-requests.test.ts compares the parsers with
// them.

describe('parsePayment', () => {
  it('returns the fields of a valid payment', () => {
    expect(parsePayment(valid)).toStrictEqual({
      ok: true,
      value: {
        orderToken: 'a token',
        paymentId: 'p-1',
        paidAtMs: 1_795_208_502_172,
        paidOn: undefined,
        amount: 1_000n,
        currency: 'EUR',
        attemptId: undefined,
      },
    });
  });

  it('applies the rules for orders to the amount and currency', () => {
    const amounts = fc.bigInt({ min: 1n, max: 99_999n }).map((hundredths) => new NumberText(`${hundredths}e-2`));
    fc.assert(
      fc.property(
        fc.oneof(amounts, anyValue),
        fc.constantFrom(...orderCurrencyCodes, 'usd', '', null),
        (amount, currency) => {
          const sent = { order_amount: amount, order_currency: currency };
          const order = parseOrder(sent);
          const orderErrors = order.ok ? [] : order.failure.filter(({ field }) => field in sent);
          const payment = parsePayment({ ...valid, ...sent });
          // Protobuf does not distinguish an empty text from an absent one, unless the field is optional as in an
          // order.
          const expected = orderErrors.filter(() => currency !== '');
          const actual = payment.ok || currency === '' ? [] : payment.failure.errors;
          expect(actual).toStrictEqual(expected);
        },
      ),
    );
  });

  it('never throws, and returns what was sent or an error for each invalid field', () => {
    const input = fc.dictionary(fc.constantFrom(...Object.keys(valid), 'attempt_id'), anyValue, {
      noNullPrototype: true,
    });
    fc.assert(
      fc.property(input, (changes) => {
        const sent: PaymentInput = { ...valid, ...changes };
        const payment = parsePayment(sent);
        if (!payment.ok) {
          expect(payment.failure.errors.length).toBeGreaterThan(0);
          for (const { field } of payment.failure.errors) expect(Object.keys(changes)).toContain(field);
          return;
        }
        const { orderToken, paymentId, currency, amount } = payment.value;
        expect([orderToken, paymentId, currency]).toStrictEqual([
          sent.order_token,
          sent.payment_id,
          sent.order_currency,
        ]);
        expect(Number(formatAmount(amount))).toBe(Number(Object(sent.order_amount).text ?? sent.order_amount));
      }),
    );
  });
});

describe('parseManualPayment', () => {
  it.each([
    ['Cash\nat the door', 'Cash\nat the door'],
    ['', undefined],
  ])('reads the note %j as %j', (payment_note, note) => {
    const manual = { payment_id: 'p-1', paid_at: '2026-11-20T21:01Z', payment_note };
    expect(parseManualPayment(manual)).toMatchObject({ ok: true, value: { note } });
  });
});

describe('parseAttempt', () => {
  const attempt = { order_token: 'a token', attempt_id: 'a-1' };

  it.each([
    [undefined, 900],
    [null, 900],
    [60, 60],
    [604_800, 604_800],
    ['60', 60],
  ])('reads the lease of %j seconds as %i', (lease_seconds, leaseSeconds) => {
    expect(parseAttempt({ ...attempt, lease_seconds })).toStrictEqual({
      ok: true,
      value: { orderToken: 'a token', attemptId: 'a-1', leaseSeconds },
    });
  });
});
