import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { validOrderInput } from '../../testing/sample-orders.ts';
import { amountHundredthsMax, NumberText } from '../money/money.ts';
import { isBlank } from '../requests/characters.ts';
import { fieldErrorCodes } from '../requests/field-rules.ts';
import { fieldRules } from './order-field-rules.ts';
import { additionalFieldNames, type OrderFieldName, orderFieldNames, serviceTypes } from './order-fields.ts';
import { type OrderInput, parseOrder } from './parse-order.ts';

const requiredFieldNames = orderFieldNames.filter(
  (name) => !('required' in fieldRules[name]) || fieldRules[name].required,
);

function errorsOf(input: OrderInput): string[] {
  const order = parseOrder(input);
  return order.ok ? [] : order.failure.map(({ field, code }) => `${field} ${code}`);
}

/** Any text that a free text field allows, short enough for each of them unless `lengthMax` says otherwise. */
function anyText(lengthMax = 40) {
  return fc
    .string({ unit: 'binary', minLength: 1, maxLength: lengthMax })
    .map((text) => text.replaceAll(/\p{Cc}/gu, ' '))
    .filter((text) => !isBlank(text));
}

const anyHundredths = fc.bigInt({ min: 1n, max: amountHundredthsMax });

/** Any order that the rules allow, in a currency with two decimals or more. */
const anyValidInput = fc.record({
  order_id: anyText(),
  order_amount: anyHundredths.map((hundredths) => new NumberText(`${hundredths}e-2`)),
  order_currency: fc.constantFrom('EUR', 'USD', 'INR', 'BHD', 'CLF'),
  order_note: anyText(),
  service_type: fc.constantFrom(...serviceTypes),
  customer_name: anyText(),
  customer_email: fc.emailAddress({ size: 'small' }).filter((email) => email.length <= 254),
  customer_phone: fc.stringMatching(/^[0-9 +\-.()/#*x]{0,20}[0-9]{4,12}$/),
  customer_address_line1: anyText(),
  customer_address_line2: fc.oneof(anyText(), fc.constantFrom('', null, undefined)),
  customer_address_city: anyText(),
  customer_address_state: anyText(),
  customer_address_country: anyText(),
  customer_address_postal_code: anyText(20)
    .map((text) => Array.from(text).slice(-20).join(''))
    .filter((text) => !isBlank(text)),
  order_checksum: fc.stringMatching(/^[!-~]{1,60}$/),
  return_url: fc.webUrl({ withQueryParameters: true, withFragments: true, size: 'small' }),
});

/** Values of all types. Objects are plain, so that reading them runs no code. */
const anyValue = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withSparseArray: true }),
  fc.string({ unit: 'binary' }),
  fc.string().map((text) => new NumberText(text)),
  fc.constantFrom('\ud800', '', ' ', null, undefined, Number.NaN, -0, Symbol('x'), 'JPY', 'x'.repeat(3_000)),
);

/** A valid order with some fields replaced by any value and some absent. */
const anyMixedInput = fc
  .tuple(anyValidInput, fc.dictionary(fc.constantFrom(...orderFieldNames), anyValue, { noNullPrototype: true }))
  .chain(([valid, replaced]) =>
    fc.subarray([...orderFieldNames]).map((absentFields) => {
      const mixed: Partial<Record<OrderFieldName, unknown>> = { ...valid, ...replaced };
      if (absentFields.length < 6) for (const field of absentFields) delete mixed[field];
      return mixed;
    }),
  );

describe('parseOrder', () => {
  it('returns the fields of a valid order as they were sent', () => {
    const order = parseOrder(validOrderInput());

    const fields = { ...validOrderInput(), order_amount: 124_950n };
    expect(order).toStrictEqual({ ok: true, value: { fields, expiresAtMs: undefined, metadata: undefined } });
  });

  it('accepts every order that the rules allow, unchanged', () => {
    fc.assert(
      fc.property(anyValidInput, (input) => {
        const order = parseOrder(input);
        if (!order.ok) throw new Error(JSON.stringify(order.failure));
        expect(Object.keys(order.value.fields)).toStrictEqual([...orderFieldNames]);
        const { order_amount, ...texts } = order.value.fields;
        const { order_amount: sentAmount, ...sentTexts } = input;
        const absent = Object.fromEntries(additionalFieldNames.map((name) => [name, '']));
        const customer_address_line2 = input.customer_address_line2 ?? '';
        expect(texts).toStrictEqual({ ...absent, ...sentTexts, customer_address_line2 });
        expect(`${order_amount}e-2`).toBe(sentAmount.text);
      }),
      { numRuns: 300 },
    );
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withObjectString: true, withTypedArray: true }),
        (anything) => {
          // The APIs have already rejected a body that is not an object.
          const order = parseOrder(Object(anything) as OrderInput);
          expect(typeof order.ok).toBe('boolean');
        },
      ),
      { numRuns: 500 },
    );
  });

  it('returns at most one error per field, in the order of the API contract', () => {
    let rejected = 0;
    let accepted = 0;
    fc.assert(
      fc.property(anyMixedInput, (input) => {
        const order = parseOrder(input);
        if (order.ok) {
          accepted += 1;
          expect(Object.keys(order.value.fields)).toStrictEqual([...orderFieldNames]);
          return;
        }
        rejected += 1;
        const fields = order.failure.map(({ field }) => field);
        expect(fields).not.toStrictEqual([]);
        expect(fields).toStrictEqual(orderFieldNames.filter((name) => fields.includes(name)));
        for (const error of order.failure) {
          expect(Object.keys(error)).toStrictEqual(['field', 'code', 'message']);
          expect(fieldErrorCodes).toContain(error.code);
        }
      }),
      { numRuns: 800 },
    );
    expect(rejected).toBeGreaterThan(50);
    expect(accepted).toBeGreaterThan(5);
  });

  it('reports exactly the invalid fields', () => {
    fc.assert(
      fc.property(fc.subarray(requiredFieldNames), fc.constantFrom(null, [], undefined), (broken, value) => {
        const code = value === null || value === undefined ? 'missing' : 'wrong_type';
        const input = validOrderInput(Object.fromEntries(broken.map((field) => [field, value])));
        expect(errorsOf(input)).toStrictEqual(broken.map((field) => `${field} ${code}`));
      }),
    );
  });

  it('returns the optional members, and their errors after those of the fields', () => {
    const optional = { order_expires_at: '2026-11-20T21:01:42.172Z', metadata: { cart: '7' } };
    expect(parseOrder(validOrderInput(optional))).toMatchObject({
      value: { expiresAtMs: 1_795_208_502_172, metadata: { cart: '7' } },
    });
    const errors = errorsOf({ ...validOrderInput(), order_id: 5, order_expires_at: 'x', metadata: 1 });
    expect(errors).toStrictEqual(['order_id wrong_type', 'order_expires_at bad_format', 'metadata wrong_type']);
  });

  it('does not change its input', () => {
    const input = Object.freeze(validOrderInput({ customer_address_line2: null }));

    expect(parseOrder(input).ok).toBe(true);
    expect(input).toStrictEqual(validOrderInput({ customer_address_line2: null }));
  });
});
