import { expect, test } from 'vitest';
import { parseBrand } from './brand.ts';

test('parseBrand returns the texts that were sent, including empty ones', () => {
  expect(parseBrand({ color: '#0b5fff', support_email: '', terms_url: null, logo: 'x' })).toEqual({
    ok: true,
    value: { color: '#0b5fff', support_email: '' },
  });
});

test('payment instructions are a text with line breaks of up to 1,000 characters', () => {
  const payment_instructions = `Transfer to\n${'😀'.repeat(988)}`;
  expect(parseBrand({ payment_instructions })).toEqual({ ok: true, value: { payment_instructions } });
  for (const [text, code] of [
    [`${payment_instructions}x`, 'too_long'],
    ['\u0000', 'bad_characters'],
  ]) {
    const failure = [{ field: 'payment_instructions', code }];
    expect(parseBrand({ payment_instructions: text })).toMatchObject({ failure });
  }
});

test('parseBrand returns an error for every invalid text', () => {
  const failure = [
    { field: 'color', code: 'wrong_type' },
    { field: 'support_url', code: 'bad_format' },
  ];
  expect(parseBrand({ color: 7, support_url: 'javascript:x', support_email: 'a@b.example' })).toMatchObject({
    failure,
  });
});

test.each(['', ' \n', '\u200b'])('payment instructions without a visible character (%j) are removed', (text) => {
  expect(parseBrand({ payment_instructions: text })).toEqual({ ok: true, value: { payment_instructions: '' } });
});
