import { expect, test } from 'vitest';
import { parseBrand } from './brand.ts';

test('parseBrand returns the texts that were sent, including empty ones', () => {
  expect(parseBrand({ color: '#0b5fff', support_email: '', terms_url: null, logo: 'x' })).toEqual({
    ok: true,
    value: { color: '#0b5fff', support_email: '' },
  });
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
