import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { orderCurrencyCodes } from '../money/currency.ts';
import { formatAmount, NumberText } from '../money/money.ts';
import { parseOrder } from '../orders/parse-order.ts';
import { type PaymentInput, parseAttempt, parseLinkToken, parsePayment, paymentFieldNames } from './parse-payment.ts';

const valid = {
  order_token: 'a token',
  payment_id: 'p-1',
  paid_at: '2026-11-20T21:01:42.172Z',
  order_amount: new NumberText('10.00'),
  order_currency: 'EUR',
};

const requiredFieldNames = paymentFieldNames.filter((name) => name !== 'attempt_id');

function errorsOf(input: PaymentInput): string[] {
  const payment = parsePayment(input);
  return payment.ok ? [] : payment.failure.map(({ field, code }) => `${field} ${code}`);
}

/** Any value, often one that is nearly valid. */
const anyValue = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withMap: true }),
  fc.string({ unit: 'binary' }),
  fc.string().map((text) => new NumberText(text)),
  fc.constantFrom(...Object.values(valid), '', null, undefined, Number.NaN, 10, '10', 'usd', '0001-01-01T00:00:00Z'),
);

describe('parsePayment', () => {
  it('returns the fields of a valid payment', () => {
    expect(parsePayment(valid)).toStrictEqual({
      ok: true,
      value: {
        orderToken: 'a token',
        paymentId: 'p-1',
        paidAtMs: 1_795_208_502_172,
        amount: 1_000n,
        currency: 'EUR',
        attemptId: undefined,
      },
    });
  });

  it.each<[string, unknown, string]>([
    ...requiredFieldNames.flatMap((field): [string, unknown, string][] => [
      [field, undefined, 'missing'],
      [field, null, 'missing'],
      [field, true, 'wrong_type'],
      [field, [], 'wrong_type'],
      [field, {}, 'wrong_type'],
    ]),
    ...['order_token', 'payment_id', 'paid_at', 'order_currency'].flatMap((field): [string, unknown, string][] => [
      [field, '', 'missing'],
      [field, 5, 'wrong_type'],
    ]),
    ['attempt_id', 5, 'wrong_type'],
    ['attempt_id', 'x'.repeat(129), 'too_long'],
    ['attempt_id', 'a\u0000', 'bad_characters'],
    ['payment_id', ' ', 'blank'],
    ['payment_id', 'x'.repeat(129), 'too_long'],
    ['payment_id', 'a\u0000', 'bad_characters'],
    ['payment_id', '\ud800', 'bad_characters'],
    ['paid_at', 'now', 'bad_format'],
    ['paid_at', '2026-11-20', 'bad_format'],
    ['order_amount', '10', 'wrong_type'],
    ['order_amount', '', 'wrong_type'],
    ['order_amount', Number.NaN, 'wrong_type'],
    ['order_amount', new NumberText('10.001'), 'too_precise'],
    ['order_amount', 10.001, 'too_precise'],
    ['order_amount', new NumberText('0'), 'out_of_range'],
    ['order_amount', -10, 'out_of_range'],
    ['order_amount', new NumberText('1e400'), 'out_of_range'],
    ['order_currency', 'usd', 'not_allowed'],
    ['order_currency', 'USDX', 'not_allowed'],
    ['order_currency', 'XXX', 'not_allowed'],
  ])('rejects the %s %j as %s', (field, value, code) => {
    expect(errorsOf({ ...valid, [field]: value })).toStrictEqual([`${field} ${code}`]);
  });

  it('lists all invalid fields, in their order', () => {
    expect(errorsOf({})).toStrictEqual(requiredFieldNames.map((field) => `${field} missing`));
  });

  it('judges amount and currency as an order does', () => {
    const amounts = fc.bigInt({ min: 1n, max: 99_999n }).map((hundredths) => new NumberText(`${hundredths}e-2`));
    fc.assert(
      fc.property(
        fc.oneof(amounts, anyValue),
        fc.constantFrom(...orderCurrencyCodes, 'usd', '', null),
        (amount, currency) => {
          const sent = { order_amount: amount, order_currency: currency };
          const order = parseOrder(sent);
          const ofOrder = order.ok ? [] : order.failure.filter(({ field }) => field in sent);
          const payment = parsePayment({ ...valid, ...sent });
          // Protobuf does not tell an empty text from an absent one, unless the field is optional as in an order.
          const expected = ofOrder.filter(() => currency !== '');
          const actual = payment.ok || currency === '' ? [] : payment.failure;
          expect(actual).toStrictEqual(expected);
        },
      ),
    );
  });

  it('never throws, and returns what was sent or the name of each field that is not valid', () => {
    const input = fc.dictionary(fc.constantFrom(...paymentFieldNames), anyValue, { noNullPrototype: true });
    fc.assert(
      fc.property(input, (changes) => {
        const sent: PaymentInput = { ...valid, ...changes };
        const payment = parsePayment(sent);
        if (!payment.ok) {
          expect(payment.failure.length).toBeGreaterThan(0);
          for (const { field } of payment.failure) expect(Object.keys(changes)).toContain(field);
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

describe('parseAttempt', () => {
  const attempt = { order_token: 'a token', attempt_id: 'a-1' };

  it.each([
    [undefined, 900],
    [null, 900],
    [60, 60],
    [3_600, 3_600],
    ['60', 60],
  ])('reads the lease of %j seconds as %i', (lease_seconds, leaseSeconds) => {
    expect(parseAttempt({ ...attempt, lease_seconds })).toStrictEqual({
      ok: true,
      value: { orderToken: 'a token', attemptId: 'a-1', leaseSeconds },
    });
  });

  it.each([
    [59, 'out_of_range'],
    [3_601, 'out_of_range'],
    [-60, 'out_of_range'],
    [60.5, 'wrong_type'],
    ['', 'wrong_type'],
    ['1e3', 'wrong_type'],
    [true, 'wrong_type'],
    [Number.NaN, 'wrong_type'],
  ])('rejects the lease of %j seconds as %s', (lease_seconds, code) => {
    expect(parseAttempt({ ...attempt, lease_seconds })).toMatchObject({ failure: [{ field: 'lease_seconds', code }] });
  });

  it('lists all invalid fields', () => {
    expect(parseAttempt({ lease_seconds: 1 })).toMatchObject({
      failure: [
        { field: 'order_token', code: 'missing' },
        { field: 'attempt_id', code: 'missing' },
        { field: 'lease_seconds', code: 'out_of_range' },
      ],
    });
  });
});

it('parseLinkToken returns any text but the empty one', () => {
  expect(parseLinkToken({ order_token: 'x' })).toStrictEqual({ ok: true, value: 'x' });
  for (const [token, code] of [
    ['', 'missing'],
    [null, 'missing'],
    [5, 'wrong_type'],
  ])
    expect(parseLinkToken({ order_token: token })).toMatchObject({ failure: [{ field: 'order_token', code }] });
});
