import { describe, expect, it } from 'vitest';
import { isSameMetadata, type MetadataFieldName, parseMetadata } from './metadata.ts';

function errorsOf(value: unknown): string[] {
  const parsed = parseMetadata(value);
  return parsed.ok ? [] : parsed.failure.map(({ field, code }) => `${field satisfies MetadataFieldName} ${code}`);
}

describe('parseMetadata', () => {
  it.each([undefined, null, {}])('returns undefined for %j', (value) => {
    expect(parseMetadata(value)).toStrictEqual({ ok: true, value: undefined });
  });

  it('returns the pairs sorted by key', () => {
    const parsed = parseMetadata({ b: '2', a: ' 1 ', toString: 'x' });
    expect(parsed.ok && Object.entries(parsed.value ?? {})).toStrictEqual([
      ['a', ' 1 '],
      ['b', '2'],
      ['toString', 'x'],
    ]);
  });

  it('reports all errors at once, and never contains an invalid key', () => {
    const value = {
      ...Object.fromEntries(Array.from({ length: 19 }, (_, i) => [`k${i}`, 'v'])),
      'a b': 1,
      c: 1,
      d: '',
    };
    expect(errorsOf(value)).toStrictEqual([
      'metadata too_long',
      'metadata bad_characters',
      'metadata.c wrong_type',
      'metadata.d blank',
    ]);
    expect(JSON.stringify(parseMetadata(value))).not.toContain('a b');
  });

  it('reports errors of the first 20 keys only', () => {
    const value = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, '']));
    expect(errorsOf(value)).toHaveLength(1 + 20);
    expect(errorsOf({ ...value, 'a b': 'v' })).toHaveLength(2 + 19);
  });

  it('accepts 8,192 bytes of UTF-8 in keys and values, and not a byte more', () => {
    const values = Array.from({ length: 16 }, (_, i) => [`k${i.toString(16)}`, 'é'.repeat(255)] as const);
    const longest = Object.fromEntries(values);
    expect(errorsOf(longest)).toStrictEqual([]);
    expect(errorsOf({ ...longest, k0: `${longest.k0}x` })).toStrictEqual(['metadata too_long']);
  });

  it.each(['text', 1, true, ['a']])('rejects %j', (value) => {
    expect(errorsOf(value)).toStrictEqual(['metadata wrong_type']);
  });

  it('rejects the key __proto__, which the Protobuf runtime cannot represent', () => {
    expect(errorsOf(JSON.parse('{"__proto__":"x"}'))).toStrictEqual(['metadata bad_characters']);
  });
});

describe('isSameMetadata', () => {
  it.each([
    [null, null, true],
    [null, { a: '1' }, false],
    [{ a: '1' }, { a: '2' }, false],
    [{ a: '1' }, { b: '1' }, false],
    [{ a: '1' }, { a: '1', b: '1' }, false],
    [{ a: '1', b: '1' }, { b: '1', a: '1' }, true],
    [{ a: '1' }, Object.create({ a: '1' }), false],
  ])('%j and %j are the same metadata: %s', (left, right, isSame) => {
    expect(isSameMetadata(left, right)).toBe(isSame);
  });
});
