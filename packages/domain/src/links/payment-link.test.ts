import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { createOrderToken } from './order-token.ts';
import { type BaseUrl, parseBaseUrl, pathPrefixOf, paymentLink, tokenIn } from './payment-link.ts';

const anyToken = fc
  .uint8Array({ minLength: 32, maxLength: 32, max: 247 })
  .map((bytes) => createOrderToken(1 as AccountId, (count) => bytes.slice(0, count)));

const anyBaseUrlParts = fc.record({
  scheme: fc.constantFrom('http', 'https'),
  host: fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.constantFrom('localhost', '[::1]', '[2001:db8::7]', 'xn--bcher-kva.example.com'),
  ),
  port: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
  segments: fc.array(fc.stringMatching(/^[a-zA-Z0-9_~-][a-zA-Z0-9._~-]{0,8}$/), { maxLength: 4 }),
  trailingSlashes: fc.nat(3),
});

function parsedBaseUrl(text: string): BaseUrl {
  const baseUrl = parseBaseUrl(text);
  if (baseUrl === undefined) throw new Error(`not a base URL: ${text}`);
  return baseUrl;
}

describe('paymentLink', () => {
  it('is the base URL with its path, then /payment/ and the token', () => {
    fc.assert(
      fc.property(anyBaseUrlParts, anyToken, ({ scheme, host, port, segments, trailingSlashes }, token) => {
        const origin = `${scheme}://${host}${port === undefined ? '' : `:${port}`}`;
        const path = segments.map((segment) => `/${segment}`).join('');
        const baseUrl = parsedBaseUrl(origin + path + '/'.repeat(trailingSlashes));
        const link = paymentLink(baseUrl, token);

        expect(link).toBe(`${new URL(origin).origin}${path}/payment/${token}`);
        expect(link.startsWith(`${baseUrl}/`)).toBe(true);
        expect(link.endsWith(`/${token}`)).toBe(true);
        expect(new URL(link).href).toBe(link);
        expect(new URL(link).pathname).toBe(`${pathPrefixOf(baseUrl)}/payment/${token}`);
        expect(pathPrefixOf(baseUrl)).toBe(path);
        expect(parseBaseUrl(baseUrl)).toBe(baseUrl);
        for (const end of ['', '.', '?lang=de', '/simulate?lang=de']) expect(tokenIn(link + end)).toBe(token);
      }),
      { numRuns: 500 },
    );
  });
});

describe('parseBaseUrl', () => {
  it.each([
    ['https://pay.example.com', 'https://pay.example.com', ''],
    ['https://pay.example.com/', 'https://pay.example.com', ''],
    ['https://pay.example.com///', 'https://pay.example.com', ''],
    ['https://pay.example.com/gateway', 'https://pay.example.com/gateway', '/gateway'],
    ['https://pay.example.com/eu/gateway/', 'https://pay.example.com/eu/gateway', '/eu/gateway'],
    ['https://pay.example.com/A-z_0.9~', 'https://pay.example.com/A-z_0.9~', '/A-z_0.9~'],
    ['http://localhost:8080', 'http://localhost:8080', ''],
    ['http://[::1]:8080/a', 'http://[::1]:8080/a', '/a'],
    ['HTTPS://Pay.Example.COM:443/Case', 'https://pay.example.com/Case', '/Case'],
    ['https://bücher.example.com', 'https://xn--bcher-kva.example.com', ''],
  ])('parses %s as %s with the path %j', (text, baseUrl, pathPrefix) => {
    expect(parseBaseUrl(text)).toBe(baseUrl);
    expect(pathPrefixOf(parsedBaseUrl(text))).toBe(pathPrefix);
  });

  it.each([
    ['no characters', ''],
    ['no scheme', 'pay.example.com'],
    ['a path only', '/gateway'],
    ['no scheme before the slashes', '//pay.example.com'],
    ['another scheme', 'ftp://pay.example.com'],
    ['a script', 'javascript:alert(1)'],
    ['no slashes', 'https:pay.example.com'],
    ['one slash', 'https:/pay.example.com'],
    ['backslashes instead of slashes', 'https:\\\\pay.example.com'],
    ['no host', 'https://'],
    ['a leading space', ' https://pay.example.com'],
    ['a space in the host', 'https://pay example.com'],
    ['a port out of range', 'https://pay.example.com:65536'],
    ['a user', 'https://user@pay.example.com'],
    ['a user and a password', 'https://user:password@pay.example.com'],
    ['a password', 'https://:password@pay.example.com'],
    ['a query', 'https://pay.example.com/?a=1'],
    ['an empty query', 'https://pay.example.com?'],
    ['a fragment', 'https://pay.example.com/#a'],
    ['an empty fragment', 'https://pay.example.com#'],
    ['an encoded character in its path', 'https://pay.example.com/p%C3%A4y'],
    ['a letter that must be encoded in its path', 'https://pay.example.com/päy'],
    ['a colon in its path, which a router reads as a parameter', 'https://pay.example.com/a:b'],
    ['an asterisk in its path, which a router reads as a wildcard', 'https://pay.example.com/a*b'],
    ['parentheses in its path', 'https://pay.example.com/(a)'],
  ])('rejects a URL with %s', (_, text) => {
    expect(parseBaseUrl(text)).toBeUndefined();
  });
});
