import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anotherOrderInput, validOrderFields } from '../../testing/sample-orders.ts';
import { checksumModes } from '../accounts/account.ts';
import { NumberText } from '../money/money.ts';
import type { OrderFields } from '../orders/order.ts';
import type { OrderInput } from '../orders/parse-order.ts';
import { canonicalText, checksumFailure, checksumFieldNames, checksumOf } from './order-checksum.ts';

const clientSecret = 'sk_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg';

/**
 * An order that contains both special characters, alone and side by side, text outside ASCII, and no second address
 * line.
 */
const vectorInput = {
  order_id: 'A|17\\',
  order_amount: new NumberText('1e1'),
  order_currency: 'EUR',
  order_note: 'Ünï 😀 C:\\dir | end',
  service_type: 'DIGITAL',
  customer_name: 'Ana \\| Lima',
  customer_email: 'ana@example.com',
  customer_phone: '+351 21 555 0199',
  customer_address_line1: 'Rua do Sol 5',
  customer_address_line2: undefined,
  customer_address_city: 'Lisboa',
  customer_address_state: 'Lisboa',
  customer_address_country: 'Portugal',
  customer_address_postal_code: '1000-001',
  return_url: 'https://shop.example.com/return?a=1|2&b=%7C',
};

const vectorText = String.raw`A\|17\\|10.00|EUR|Ünï 😀 C:\\dir \| end|DIGITAL|Ana \\\| Lima|ana@example.com|+351 21 555 0199|Rua do Sol 5||Lisboa|Lisboa|Portugal|1000-001|https://shop.example.com/return?a=1\|2&b=%7C`;

// printf %s "$text" | openssl dgst -sha256 -hmac "$client_secret"
const vectorHex = '05377ad706e35f315cab1a184a8bb6fd4eda2a5699805492748463af3bbfa02d';

/** Returns the values in a canonical text, parsed without the code under test. */
function readBack(text: string): string[] {
  const values = [''];
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === '|') values.push('');
    else {
      if (character === '\\') index += 1;
      values[values.length - 1] += text[index] ?? '';
    }
  }
  return values;
}

function signed(overrides?: OrderInput): OrderFields {
  return validOrderFields({ ...overrides, order_checksum: checksumOf(validOrderFields(overrides), clientSecret) });
}

describe('canonicalText', () => {
  it('is the text of the fixed vector', () => {
    expect(canonicalText(validOrderFields(vectorInput))).toBe(vectorText);
  });

  it('contains the 15 frozen fields in the order of the API contract, without the checksum', () => {
    expect(canonicalText(validOrderFields({ order_checksum: 'left-out' }))).toBe(
      'WEB-2026-000417|1249.50|EUR|Two walnut shelves and one reading lamp|PHYSICAL_GOODS|Noor van der Linden|' +
        'noor.vanderlinden@example.com|+31 20 555 0142|Lindengracht 88|Second floor|Amsterdam|Noord-Holland|' +
        'Netherlands|1015 KK|https://shop.example.com/checkout/return?cart=5521',
    );
  });

  it('can be parsed back into its values, so that different orders have different texts', () => {
    const value = fc.string({ unit: fc.constantFrom('|', '\\', '$', '&', 'a', '😀'), minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(value, value, value, fc.option(value), (orderId, note, line1, line2) => {
        const fields = validOrderFields({
          order_id: orderId,
          order_note: note,
          customer_address_line1: line1,
          customer_address_line2: line2,
        });
        const values = readBack(canonicalText(fields));
        expect(values).toHaveLength(15);
        expect([values[0], values[3], values[8], values[9]]).toStrictEqual([orderId, note, line1, line2 ?? '']);
      }),
      { numRuns: 500 },
    );
  });
});

describe('checksumOf', () => {
  it('is v1= and the HMAC-SHA256 of the fixed vector', () => {
    expect(checksumOf(validOrderFields(vectorInput), clientSecret)).toBe(`v1=${vectorHex}`);
  });

  it('does not depend on the checksum that was sent', () => {
    expect(checksumOf(validOrderFields({ ...vectorInput, order_checksum: 'x' }), clientSecret)).toBe(`v1=${vectorHex}`);
  });

  it('depends on the secret', () => {
    expect(checksumOf(validOrderFields(vectorInput), clientSecret.replace('g', 'h'))).not.toBe(`v1=${vectorHex}`);
  });
});

describe('checksumFailure', () => {
  it('has two modes', () => {
    expect(checksumModes).toStrictEqual(['versioned', 'required']);
  });

  it.each(checksumModes)('accepts a correct checksum in the mode %s', (mode) => {
    expect(checksumFailure(signed(), clientSecret, mode)).toBeUndefined();
    const vector = validOrderFields({ ...vectorInput, order_checksum: `v1=${vectorHex}` });
    expect(checksumFailure(vector, clientSecret, mode)).toBeUndefined();
  });

  const unversioned = ['x', 'v1', 'V1=', 'v2=00', ' v1=', vectorHex, `V1=${vectorHex}`, `sha256=${vectorHex}`];
  it.each(unversioned)('accepts the unversioned checksum %j unless the mode is required', (checksum) => {
    const fields = validOrderFields({ ...vectorInput, order_checksum: checksum });
    expect(checksumFailure(fields, clientSecret, 'versioned')).toBeUndefined();
    expect(checksumFailure(fields, clientSecret, 'required')).toMatchObject({ kind: 'invalid_order' });
  });

  describe.each(checksumModes)('in the mode %s', (mode) => {
    it.each(Array.from(vectorHex, (_, index) => index))('rejects a wrong character at index %i', (index) => {
      const wrongCharacter = vectorHex[index] === '0' ? '1' : '0';
      const order_checksum = `v1=${vectorHex.slice(0, index)}${wrongCharacter}${vectorHex.slice(index + 1)}`;
      const fields = validOrderFields({ ...vectorInput, order_checksum });
      expect(checksumFailure(fields, clientSecret, mode)).toMatchObject({ kind: 'checksum_mismatch' });
    });

    it.each([
      ['nothing after the prefix', 'v1='],
      ['upper-case hex', `v1=${vectorHex.toUpperCase()}`],
      ['one upper-case letter', `v1=${vectorHex.replace(/[a-f]/, (letter) => letter.toUpperCase())}`],
      ['one character too few', `v1=${vectorHex.slice(0, -1)}`],
      ['one character too many', `v1=${vectorHex}0`],
      ['a trailing space', `v1=${vectorHex} `],
      ['the prefix twice', `v1=v1=${vectorHex}`],
      ['the longest text', 'v1='.padEnd(256, '0')],
    ])('rejects %s', (_, checksum) => {
      const fields = validOrderFields({ ...vectorInput, order_checksum: checksum });
      expect(checksumFailure(fields, clientSecret, mode)).toMatchObject({ kind: 'checksum_mismatch' });
    });

    it('rejects a checksum made with another secret', () => {
      expect(checksumFailure(signed(), clientSecret.replace('g', 'h'), mode)).toMatchObject({
        kind: 'checksum_mismatch',
      });
    });

    it.each(Object.entries(anotherOrderInput))(
      'rejects the checksum if %s was changed, unless the checksum does not cover that field',
      (field, value) => {
        const { order_checksum } = signed();
        const changed = validOrderFields({ [field]: value, order_checksum });
        const isCovered = (checksumFieldNames as readonly string[]).includes(field);
        const failure = isCovered ? { kind: 'checksum_mismatch' } : undefined;
        expect(checksumFailure(changed, clientSecret, mode)).toEqual(failure && expect.objectContaining(failure));
      },
    );

    it('rejects the checksum if text moved from one field to the next', () => {
      const { order_checksum } = signed({ customer_name: 'A|B', customer_address_line1: 'C' });
      const moved = validOrderFields({ customer_name: 'A', customer_address_line1: 'B|C', order_checksum });
      expect(checksumFailure(moved, clientSecret, mode)).toMatchObject({ kind: 'checksum_mismatch' });
    });
  });
});
