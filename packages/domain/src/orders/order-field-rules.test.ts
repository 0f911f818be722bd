import { describe, expect, it } from 'vitest';
import { validOrderInput } from '../../testing/sample-orders.ts';
import { fieldErrorCodes } from '../requests/field-rules.ts';
import { fieldRules, mayBeNull } from './order-field-rules.ts';
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';
import { parseOrder } from './parse-order.ts';

/**
 * A text field, and a function that returns a valid text of any length in code points, if possible with astral
 * characters.
 */
interface TextField {
  readonly field: OrderFieldName;
  /** The maximum length that the API contract promises, in code points. */
  readonly lengthMax: number;
  readonly ofLength: (length: number) => string;
}

const textFields: readonly TextField[] = [
  { field: 'order_id', lengthMax: 128, ofLength: (length) => '𝒪'.repeat(length) },
  { field: 'order_note', lengthMax: 1_000, ofLength: (length) => '😀'.repeat(length) },
  { field: 'customer_name', lengthMax: 255, ofLength: (length) => '𠜎'.repeat(length) },
  { field: 'customer_email', lengthMax: 254, ofLength: (length) => `${'😀'.repeat(length - 2)}@a` },
  { field: 'customer_phone', lengthMax: 32, ofLength: (length) => '1'.repeat(length) },
  { field: 'customer_address_line1', lengthMax: 255, ofLength: (length) => '🏠'.repeat(length) },
  { field: 'customer_address_line2', lengthMax: 255, ofLength: (length) => '🏢'.repeat(length) },
  { field: 'customer_address_city', lengthMax: 100, ofLength: (length) => '🌆'.repeat(length) },
  { field: 'customer_address_state', lengthMax: 100, ofLength: (length) => '🌳'.repeat(length) },
  { field: 'customer_address_country', lengthMax: 100, ofLength: (length) => '🌍'.repeat(length) },
  { field: 'customer_address_postal_code', lengthMax: 20, ofLength: (length) => '📮'.repeat(length) },
  { field: 'order_checksum', lengthMax: 256, ofLength: (length) => '~'.repeat(length) },
  { field: 'return_url', lengthMax: 2_048, ofLength: (length) => `http://a/${'😀'.repeat(length - 9)}` },
];

/** Parses an otherwise valid order with this value. Returns `unchanged`, `changed`, or the codes of all errors. */
function outcomeOf(field: OrderFieldName, value: unknown): string {
  const order = parseOrder(validOrderInput({ [field]: value }));
  if (order.ok) return order.value.fields[field] === value ? 'unchanged' : 'changed';
  return order.failure.map((error) => (error.field === field ? error.code : `${error.field} ${error.code}`)).join();
}

// The fixtures state the rule of each field, and packages/fixtures/src/parse-requests.test.ts compares parseOrder with
// them. This file tests what would need too many fixtures.

describe('the field rules', () => {
  it('cover the sixteen fields of the API contract, in its order, before the additional ones', () => {
    expect(orderFieldNames.slice(0, 16).join(' ')).toBe(
      'order_id order_amount order_currency order_note service_type customer_name customer_email customer_phone ' +
        'customer_address_line1 customer_address_line2 customer_address_city customer_address_state ' +
        'customer_address_country customer_address_postal_code order_checksum return_url',
    );
    expect(Object.keys(fieldRules)).toStrictEqual([...orderFieldNames]);
  });

  it('use eleven error codes', () => {
    expect(fieldErrorCodes.join(' ')).toBe(
      'missing wrong_type blank too_long too_short not_allowed bad_format bad_characters too_precise out_of_range unknown_field',
    );
  });
});

it.each(textFields)('$field has at most $lengthMax characters', ({ field, lengthMax, ofLength }) => {
  expect(outcomeOf(field, ofLength(lengthMax))).toBe('unchanged');
  expect(outcomeOf(field, ofLength(lengthMax + 1))).toBe('too_long');
});

it('only the optional texts may be null', () => {
  const members = [...orderFieldNames, 'order_expires_at', 'toString'];
  expect(members.filter(mayBeNull)).toEqual(['customer_address_line2', 'customer_locale']);
});

it('a phone number has at least 4 characters', () => {
  expect(['1234', '123'].map((value) => outcomeOf('customer_phone', value))).toEqual(['unchanged', 'too_short']);
});

it.each(textFields)('a very long $field is too_long', ({ field, ofLength }) => {
  expect(outcomeOf(field, ofLength(60_000))).toBe('too_long');
});

describe('a text field', () => {
  // C0 is 0 to 1F, DEL is 7F, C1 is 80 to 9F.
  const controls = Array.from({ length: 0xa0 }, (_, code) => code)
    .filter((code) => code < 0x20 || code >= 0x7f)
    .map((code) => String.fromCharCode(code));

  it.each(textFields)(
    'rejects control characters at any position, except line breaks and tabs in a note: $field',
    ({ field, ofLength }) => {
      expect(controls).toHaveLength(65);
      const text = ofLength(12);
      const allowed = field === 'order_note' ? ['\t', '\n', '\r'] : [];
      for (const control of controls) {
        const outcome = allowed.includes(control) ? 'unchanged' : 'bad_characters';
        expect(outcomeOf(field, control + text), JSON.stringify(control)).toBe(outcome);
        expect(outcomeOf(field, text + control), JSON.stringify(control)).toBe(outcome);
        expect(outcomeOf(field, text.slice(0, 2) + control + text.slice(2)), JSON.stringify(control)).toBe(outcome);
      }
    },
  );

  it.each(textFields)('rejects text that is not well-formed Unicode: $field', ({ field, ofLength }) => {
    const text = ofLength(12);
    for (const surrogates of ['\ud83d', '\ude00', '\ude00\ud83d', '\ud83d\ud83d\ude00', '\udfff', '\ud800']) {
      expect(outcomeOf(field, surrogates + text), JSON.stringify(surrogates)).toBe('bad_characters');
      expect(outcomeOf(field, text + surrogates), JSON.stringify(surrogates)).toBe('bad_characters');
    }
  });
});

describe('the message of an error', () => {
  it.each(textFields)('states the rule of $field and never repeats the value', ({ field, ofLength }) => {
    const secret = 'S3cr3t-Value';
    for (const value of [`${secret}\0`, `${secret}\ud800`, secret + ofLength(3_000), [secret], { secret }]) {
      const order = parseOrder(validOrderInput({ [field]: value }));
      const messages = order.ok ? [] : order.failure.map(({ message }) => message);
      expect(messages).toHaveLength(1);
      expect(messages[0]).toMatch(/^must /);
      expect(messages[0]).not.toContain(secret);
    }
  });

  it.each([
    ['customer_name', 'Ada\u0007', 'must not contain control characters (U+0007 at position 4)'],
    ['customer_name', '\u0007Ada', 'must not contain control characters (U+0007 at position 1)'],
    ['customer_email', 'customer@shop.com\u200b', 'must not contain invisible characters (U+200B at position 18)'],
    [
      'return_url',
      'https://a\\b',
      'must be an absolute http or https URL without user, password, backslash or white space (U+005C at position 10)',
    ],
    ['order_amount', 10.5, 'must have no decimals in this currency'],
    ['return_url', 'ftp://a', 'must be an absolute http or https URL without user, password, backslash or white space'],
  ] as const)('says what is wrong with the %s %j, and names a forbidden character', (field, value, message) => {
    expect(parseOrder(validOrderInput({ order_currency: 'JPY', order_amount: 10, [field]: value }))).toMatchObject({
      failure: [{ field, message }],
    });
  });
});
