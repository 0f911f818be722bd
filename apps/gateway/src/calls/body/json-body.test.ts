import { failureDetail } from '@order-gateway/contract/errors';
import { NumberText } from '@order-gateway/domain/money';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { acceptedValues, rejectedDocuments, rejectedValues } from '../../../test/helpers/attacks/json-corpus.ts';
import { readJsonBody } from './json-body.ts';

const encode = (text: string) => new TextEncoder().encode(text);

const reason = /^The body (is|has) .+\.$/;

function failureOf(body: Uint8Array | string): string | undefined {
  const parsed = readJsonBody(typeof body === 'string' ? encode(body) : body);
  return parsed.ok ? undefined : failureDetail(parsed.failure);
}

test('returns the digits of the amount as they were sent', () => {
  const numbers = ['10', '10.00', '1e1', '10.000000000000000001', '-0', '1E+400', '123456789012345678901234567890'];
  for (const digits of numbers) {
    const value = { order_amount: new NumberText(digits) };
    expect(readJsonBody(encode(`{ "order_amount" :\t${digits}\n}`))).toEqual({ ok: true, value });
    const refund = { refund_id: 'r', refund_amount: new NumberText(digits) };
    expect(readJsonBody(encode(`{"refund_id":"r","refund_amount":${digits}}`))).toEqual({ ok: true, value: refund });
  }
});

test('reads the amount of the outermost object if its key is escaped, and if nested objects have the same key', () => {
  const text = '{"a":{"order_amount":1},"order\\u005famount":2.50,"b":[{"order_amount":3}]}';
  const parsed = readJsonBody(encode(text));
  expect(parsed.ok && parsed.value.order_amount).toEqual(new NumberText('2.50'));
});

test.each([
  '{"order_amount":10.000000000000000001,"refund_amount":1}',
  '{"refund_amount":1,"order_amount":10.000000000000000001}',
  '{"a":{},"order_amount":10.000000000000000001,"refund_amount":1}',
])('returns the digits of each amount, although no request needs both: %s', (text) => {
  const parsed = readJsonBody(encode(text));
  expect(parsed).toMatchObject({
    value: { order_amount: new NumberText('10.000000000000000001'), refund_amount: new NumberText('1') },
  });
});

test('leaves an amount that is not a number to the field rules', () => {
  expect(readJsonBody(encode('{"order_amount":"10.00"}'))).toEqual({ ok: true, value: { order_amount: '10.00' } });
});

test('reads every accepted value of the JSON corpus as JSON.parse does', () => {
  for (const value of acceptedValues) {
    const text = `{"order_note":${value},"unknown":${value}}`;
    const parsed = readJsonBody(encode(text));
    expect([value, parsed.ok && JSON.stringify(parsed.value)]).toEqual([value, JSON.stringify(JSON.parse(text))]);
  }
});

test('rejects invalid bodies, including those with duplicate keys, and says why', () => {
  for (const value of rejectedValues) {
    expect([value, failureOf(`{"order_note":${value}}`)]).toEqual([value, expect.stringMatching(reason)]);
  }
  for (const [name, body] of rejectedDocuments) {
    expect([name, failureOf(body)]).toEqual([name, expect.stringMatching(reason)]);
  }
});

test('accepts the same key in different objects, and __proto__ and constructor as plain keys', () => {
  const text =
    '{"a":{"k":1},"b":{"k":2},"c":[{"k":3},{"k":4}],"__proto__":{"admin":true},"constructor":1,"s":"{\\"a\\":1,\\"a\\":2}\\\\"}';
  const parsed = readJsonBody(encode(text));
  expect(parsed.ok && JSON.stringify(parsed.value)).toBe(JSON.stringify(JSON.parse(text)));
  expect(Reflect.get({}, 'admin')).toBeUndefined();
});

test('reads 30,000 nested arrays or 10,000 nested objects without running out of stack', () => {
  expect(failureOf(`{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)).toBeUndefined();
  expect(failureOf(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`)).toBeUndefined();
  expect(failureOf('['.repeat(65_000))).toMatch(/not valid JSON/);
});

test('an error names the position if the parser does, and contains no part of the body', () => {
  expect(failureOf('{"order_note": 1 "order_id": 2}')).toBe('The body is not valid JSON at position 17.');
  expect(failureOf('{"order_note": }')).toBe('The body is not valid JSON.');
  expect(failureOf(new Uint8Array([0xff]))).toBe('The body is not valid UTF-8.');
  expect(failureOf('{"customer_name": Geheim}')).not.toContain('Geheim');
  expect(failureOf('{"geheim":1,"geheim":2}')).not.toContain('geheim');
});

test('agrees with JSON.parse on random objects without duplicate keys, and rejects a duplicate of any key', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), fc.nat(), (object, pick) => {
      const text = JSON.stringify(object);
      const parsed = readJsonBody(encode(text));
      const wellFormed = text.isWellFormed();
      if (wellFormed) expect(parsed).toEqual({ ok: true, value: JSON.parse(text) });
      const keys = Object.keys(object);
      const key = keys[pick % keys.length];
      if (key === undefined) return;
      expect(failureOf(`${text.slice(0, -1)},${JSON.stringify(key)}:0}`)).toMatch(/duplicate key/);
    }),
    { numRuns: 500 },
  );
});

const flatValue = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.stringMatching(/^[ a-c:,{}[\]]{0,9}$/));

test('reads a flat object with any keys and white space as JSON.parse does', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^[ a-c:,{}[\]]{0,3}$/), flatValue),
      fc.constantFrom('', ' ', '\t', '\r\n '),
      fc.stringMatching(/^[1-9][0-9]{0,6}\.[0-9]{2}$/),
      (object, space, digits) => {
        const members = Object.entries({ ...object, order_amount: 0 }).map(([key, value]) => {
          return `${space}${JSON.stringify(key)}${space}:${space}${key === 'order_amount' ? digits : JSON.stringify(value)}${space}`;
        });
        const text = `{${members.join(',')}}`;
        const value = { ...object, order_amount: new NumberText(digits) };
        expect(readJsonBody(encode(text))).toEqual({ ok: true, value });
        expect(failureOf(`{${[...members, members[0]].join(',')}}`)).toMatch(/duplicate key/);
      },
    ),
    { numRuns: 500 },
  );
});
