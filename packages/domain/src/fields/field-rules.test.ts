import { describe, expect, it } from 'vitest';
import { validOrderInput } from '../../testing/sample-orders.ts';
import { parseOrder } from '../orders/parse-order.ts';
import { fieldErrorCodes, fieldRules } from './field-rules.ts';
import { type OrderFieldName, orderFieldNames } from './order-fields.ts';

/** A text field with its limits and a valid text of any length in code points, of astral characters where allowed. */
interface TextField {
  readonly field: OrderFieldName;
  readonly lengthMin: number;
  readonly lengthMax: number;
  readonly ofLength: (length: number) => string;
}

const textFields: readonly TextField[] = [
  { field: 'order_id', lengthMin: 1, lengthMax: 128, ofLength: (length) => '𝒪'.repeat(length) },
  { field: 'order_note', lengthMin: 1, lengthMax: 1_000, ofLength: (length) => '😀'.repeat(length) },
  { field: 'customer_name', lengthMin: 1, lengthMax: 255, ofLength: (length) => '𠜎'.repeat(length) },
  { field: 'customer_email', lengthMin: 3, lengthMax: 254, ofLength: (length) => `${'😀'.repeat(length - 2)}@a` },
  { field: 'customer_phone', lengthMin: 4, lengthMax: 32, ofLength: (length) => '1'.repeat(length) },
  { field: 'customer_address_line1', lengthMin: 1, lengthMax: 255, ofLength: (length) => '🏠'.repeat(length) },
  { field: 'customer_address_line2', lengthMin: 1, lengthMax: 255, ofLength: (length) => '🏢'.repeat(length) },
  { field: 'customer_address_city', lengthMin: 1, lengthMax: 100, ofLength: (length) => '🌆'.repeat(length) },
  { field: 'customer_address_state', lengthMin: 1, lengthMax: 100, ofLength: (length) => '🌳'.repeat(length) },
  { field: 'customer_address_country', lengthMin: 1, lengthMax: 100, ofLength: (length) => '🌍'.repeat(length) },
  { field: 'customer_address_postal_code', lengthMin: 1, lengthMax: 20, ofLength: (length) => '📮'.repeat(length) },
  { field: 'order_checksum', lengthMin: 1, lengthMax: 256, ofLength: (length) => '~'.repeat(length) },
  { field: 'return_url', lengthMin: 9, lengthMax: 2_048, ofLength: (length) => `http://a/${'😀'.repeat(length - 9)}` },
];

const isRequired = (field: OrderFieldName) => !('required' in fieldRules[field]) || fieldRules[field].required;

const requiredTextFields = textFields.filter(({ field }) => isRequired(field));

const freeTextFields = textFields.filter(
  ({ field }) => !['customer_email', 'customer_phone', 'order_checksum', 'return_url'].includes(field),
);

/** Parses an otherwise valid order with this value: `unchanged`, or the codes of all errors. */
function outcomeOf(field: OrderFieldName, value: unknown): string {
  const order = parseOrder(validOrderInput({ [field]: value }));
  if (order.ok) return order.value.fields[field] === value ? 'unchanged' : 'changed';
  return order.failure.map((error) => (error.field === field ? error.code : `${error.field} ${error.code}`)).join();
}

describe('the field rules', () => {
  it('cover the sixteen fields of the API contract, in its order, before the additions', () => {
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

describe('the length of a text', () => {
  it.each(textFields)(
    '$field may be $lengthMin to $lengthMax code points',
    ({ field, lengthMin, lengthMax, ofLength }) => {
      expect(outcomeOf(field, ofLength(lengthMin))).toBe('unchanged');
      expect(outcomeOf(field, ofLength(lengthMax))).toBe('unchanged');
      expect(outcomeOf(field, ofLength(lengthMax + 1))).toBe('too_long');
    },
  );

  it.each(textFields)('$field is too_long also if it is very long', ({ field, ofLength }) => {
    expect(outcomeOf(field, ofLength(60_000))).toBe('too_long');
  });

  it('is counted in code points, not in graphemes', () => {
    // Two code points each: 64 of them are 128, one more is too long.
    expect(outcomeOf('order_id', 'e\u0301'.repeat(64))).toBe('unchanged');
    expect(outcomeOf('order_id', `${'e\u0301'.repeat(64)}e`)).toBe('too_long');
  });
});

describe('the characters of a text', () => {
  // C0 is 0 to 1F, DEL is 7F, C1 is 80 to 9F.
  const controls = Array.from({ length: 0xa0 }, (_, code) => code)
    .filter((code) => code < 0x20 || code >= 0x7f)
    .map((code) => String.fromCharCode(code));

  it.each(textFields)('of $field are not control characters, at any position', ({ field, lengthMin, ofLength }) => {
    expect(controls).toHaveLength(65);
    const text = ofLength(lengthMin + 2);
    const allowed = field === 'order_note' ? ['\t', '\n', '\r'] : [];
    for (const control of controls) {
      const outcome = allowed.includes(control) ? 'unchanged' : 'bad_characters';
      expect(outcomeOf(field, control + text), JSON.stringify(control)).toBe(outcome);
      expect(outcomeOf(field, text + control), JSON.stringify(control)).toBe(outcome);
      expect(outcomeOf(field, text.slice(0, 2) + control + text.slice(2)), JSON.stringify(control)).toBe(outcome);
    }
  });

  it.each(textFields)('of $field are well-formed Unicode', ({ field, lengthMin, ofLength }) => {
    const text = ofLength(lengthMin + 2);
    for (const lone of ['\ud83d', '\ude00', '\ude00\ud83d', '\ud83d\ud83d\ude00', '\udfff', '\ud800']) {
      expect(outcomeOf(field, lone + text), JSON.stringify(lone)).toBe('bad_characters');
      expect(outcomeOf(field, text + lone), JSON.stringify(lone)).toBe('bad_characters');
    }
  });

  it.each(freeTextFields)('of $field may be anything else, and are not changed', ({ field }) => {
    const texts = [
      ' padded ',
      '\u00a0x\u3000',
      'Zoe\u0308',
      'Zoë',
      'ﬁ',
      '\u200fשלום',
      `'"\\|`,
      '<b>&amp;</b>',
      '\u2028',
      '\u{10ffff}',
    ];
    for (const text of texts) expect(outcomeOf(field, `x${text}`), text).toBe('unchanged');
  });

  it('of order_note may be line breaks and tabs', () => {
    expect(outcomeOf('order_note', 'first\n\tsecond\r\n\r\nthird\n')).toBe('unchanged');
  });
});

describe('a field without a value', () => {
  it.each(requiredTextFields)('is blank: $field', ({ field }) => {
    for (const blank of ['', ' ', '     ', '\u00a0', '\u2003\u3000', '\ufeff']) {
      expect(outcomeOf(field, blank), JSON.stringify(blank)).toBe('blank');
    }
  });

  it('is blank: order_note of line breaks and tabs only', () => {
    expect(outcomeOf('order_note', '\n\t \r\n')).toBe('blank');
  });

  it.each(orderFieldNames.filter(isRequired))('is missing: %s', (field) => {
    expect(outcomeOf(field, undefined)).toBe('missing');
    expect(outcomeOf(field, null)).toBe('missing');
    const { [field]: _, ...others } = validOrderInput();
    expect(parseOrder(others)).toMatchObject({ ok: false, failure: [{ field, code: 'missing' }] });
  });

  it.each(orderFieldNames.filter((field) => !isRequired(field)))('is valid for %s: absent, null or empty', (field) => {
    const { [field]: _, ...absent } = validOrderInput();
    for (const input of [absent, { ...absent, [field]: null }, { ...absent, [field]: '' }]) {
      expect(parseOrder(input)).toMatchObject({ ok: true, value: { fields: { [field]: '' } } });
    }
  });

  it('is valid for customer_address_line2: blank, and unchanged', () => {
    expect(outcomeOf('customer_address_line2', '  ')).toBe('unchanged');
  });
});

describe('a value of the wrong type', () => {
  const wrong = [0, 1, 10.5, true, false, 10n, [], ['text'], {}, { text: 'text' }, Symbol('text'), () => 'text'];

  it.each(orderFieldNames.filter((field) => field !== 'order_amount'))('is rejected for %s', (field) => {
    for (const value of wrong) expect(outcomeOf(field, value)).toBe('wrong_type');
    expect(outcomeOf(field, new String('text'))).toBe('wrong_type');
  });

  it.each(['10.00', '10', '', true, false, 10n, [], [10], {}, Symbol('10'), new Number(10), { text: '10' }])(
    'is rejected for order_amount: %s',
    (value) => {
      expect(outcomeOf('order_amount', value)).toBe('wrong_type');
    },
  );
});

describe('a field with a list of values', () => {
  const properties = ['constructor', '__proto__', 'toString', 'includes'];
  const noMinorUnit = ['XXX', 'XTS', 'XAU', 'XDR', 'XSU'];
  const noCurrency = ['', ' ', 'eur', 'Eur', 'EUR ', ' EUR', 'EUR\n', 'EU', 'EURO', '978', 'ABC', 'DEM', '€', 'ＥＵＲ'];
  const noServiceType = ['', 'digital', 'Digital', 'DIGITAL ', ' DIGITAL', 'PHYSICAL', 'PHYSICAL GOODS', '0'];

  it.each([
    ['order_currency', 'unchanged', ['EUR', 'USD', 'INR', 'BHD', 'CLF', 'UYW', 'XCG']],
    ['order_currency', 'not_allowed', [...noMinorUnit, ...noCurrency, '\ud83d', ...properties]],
    ['service_type', 'unchanged', ['DIGITAL', 'PHYSICAL_GOODS']],
    ['service_type', 'not_allowed', [...noServiceType, 'DIGITAL,PHYSICAL_GOODS', ...properties]],
  ] as const)('%s is %s for each of %j', (field, outcome, values) => {
    for (const value of values) expect(outcomeOf(field, value), value).toBe(outcome);
  });
});

describe('customer_email', () => {
  const exotic = [`"'|\\"@example.com`, 'ünï@bücher.example.com', '用户@例子.example', '😀@a', '.@.'];
  const wrongAts = ['a', '@', 'a@', '@b', 'a@b@c', 'a@@b', '@a@b', 'a@b@'];
  const withSpaces = ['a b@c', 'a@b c', ' a@b', 'a@b ', 'a\u00a0@b', 'a@\u3000b'];

  it.each(['a@b', 'first.last+tag@example.com', ...exotic])(
    'may be %s: mail servers decide whether it exists',
    (email) => {
      expect(outcomeOf('customer_email', email)).toBe('unchanged');
    },
  );

  it.each([...wrongAts, ...withSpaces])('may not be %j', (email) => {
    expect(outcomeOf('customer_email', email)).toBe('bad_format');
  });
});

describe('customer_phone', () => {
  it.each([
    '1234',
    '+1 (555) 010-0199',
    '020/555.0142',
    '*31#0205550142',
    '555 0142 x12',
    '    1234',
    '1-2-3-4',
    '1x2x3x4',
  ])('may be %j', (phone) => {
    expect(outcomeOf('customer_phone', phone)).toBe('unchanged');
  });

  it.each([
    ['too_short', ['1', '123', 'x']],
    ['bad_format', ['123 ', '+123', '(+)-', 'xxxxxxxx', '1 2 3'.padEnd(32, '-')]],
    ['bad_characters', ['12345 X9', '12345 ext 9', '12345,9', '12345;9', '12345_9', '+31\u00a020 555']],
    ['bad_characters', ['+31‑20‑5550142', '１２３４５', '٠١٢٣٤٥', '1234😀']],
    ['too_long', ['1234'.padEnd(33, ' ')]],
  ])('is %s as %j', (code, phones) => {
    for (const phone of phones) expect(outcomeOf('customer_phone', phone), phone).toBe(code);
  });
});

describe('order_checksum', () => {
  const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(0x20 + index)).join('');

  it('may contain every printable ASCII character, and is not changed', () => {
    expect(outcomeOf('order_checksum', printable)).toBe('unchanged');
    expect(outcomeOf('order_checksum', '!')).toBe('unchanged');
    expect(outcomeOf('order_checksum', ' padded ')).toBe('unchanged');
  });

  it.each(['é', 'a\u00a0b', '😀', 'ａ', '\u200b'])('may not contain %j', (text) => {
    expect(outcomeOf('order_checksum', `v1=${text}`)).toBe('bad_characters');
  });
});

describe('return_url', () => {
  it.each([
    'http://example.com',
    'https://example.com/',
    'HTTPS://EXAMPLE.COM/Path',
    'https://shop.example.com:8443/return?order=1&next=%2Fa%20b#done',
    'https://example.com?x=1',
    'https://example.com#done',
    'http://localhost:3000/return',
    'http://127.0.0.1/return',
    'http://[2001:db8::1]:8080/return',
    'https://bücher.example.com/zurück',
    'https://example.com/a@b?c=d@e#f@g',
    'https://example.com/?to=https://other.example.com//x',
    `https://example.com/'"<>|{}`,
    'https://example.com/😀',
  ])('may be %s', (url) => {
    expect(outcomeOf('return_url', url)).toBe('unchanged');
  });

  it.each([
    ['a path', '/return'],
    ['no scheme', 'shop.example.com/return'],
    ['no scheme before the slashes', '//shop.example.com/return'],
    ['another scheme', 'ftp://shop.example.com/return'],
    ['an app link', 'myapp://return'],
    ['a script', 'javascript:alert(1)'],
    ['a script with slashes', 'javascript://example.com/%0aalert(1)'],
    ['data', 'data:text/html,hello'],
    ['no slashes', 'https:shop.example.com'],
    ['one slash', 'https:/shop.example.com'],
    ['three slashes', 'https:///shop.example.com'],
    ['no host', 'https://'],
    ['no host before the query', 'https://?a=1'],
    ['no host before the port', 'https://:8080/'],
    ['a port that is not a number', 'https://example.com:port/'],
    ['a port out of range', 'https://example.com:65536/'],
    ['a broken IPv6 host', 'https://[::1/'],
    ['a host with a forbidden character', 'https://exa<mple.com/'],
    ['a user', 'https://user@example.com/'],
    ['an empty user', 'https://@example.com/'],
    ['a user and a password', 'https://user:password@example.com/'],
    ['a password', 'https://:password@example.com/'],
    ['a host posing as user', 'https://bank.example.com@example.org/'],
    ['a character that only looks like @', 'https://bank.example.com＠example.org/'],
    ['a character that only looks like a slash', 'https://bank.example.com／example.org'],
    ['a backslash instead of a slash', 'https:\\\\example.com/'],
    ['a backslash after the host', 'https://example.com\\@example.org/'],
    ['a backslash in the path', 'https://example.com/a\\b'],
    ['a backslash in the query', 'https://example.com/?a=\\'],
    ['a space before it', ' https://example.com/'],
    ['a space after it', 'https://example.com/ '],
    ['a space in the host', 'https://exam ple.com/'],
    ['a space in the path', 'https://example.com/a b'],
    ['a space in the query', 'https://example.com/?a=b c'],
    ['white space outside ASCII', 'https://example.com/a\u3000b'],
    ['a line separator', 'https://example.com/a\u2028b'],
  ])('may not have %s', (_, url) => {
    expect(outcomeOf('return_url', url)).toBe('bad_format');
  });
});

describe('customer_locale', () => {
  const longest = 'en-Latn-GB-variant1-variant2-variant';

  it.each(['de', 'DE-ch', 'pt-BR', 'zh-Hans-CN', 'es-419', 'tlh', 'sl-rozaj', 'de-u-co-phonebk', longest.slice(0, 34)])(
    'may be %s, and is not changed',
    (tag) => {
      expect(outcomeOf('customer_locale', tag)).toBe('unchanged');
    },
  );

  it.each([
    [
      'bad_format',
      ['e', 'english-', '-de', 'de_CH', 'de--CH', 'de CH', '12', 'x-private', 'en-a', 'Deutsch!', 'dé', 'de,fr;q=1'],
    ],
    ['bad_characters', ['de\r\nx: y', 'de\0', 'de\ud800']],
    ['too_long', [longest, 'e'.repeat(60_000)]],
  ])('is %s as %j', (code, tags) => {
    for (const tag of tags) expect(outcomeOf('customer_locale', tag), tag).toBe(code);
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
});
