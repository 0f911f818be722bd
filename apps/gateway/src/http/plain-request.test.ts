import { expect, test } from 'vitest';
import { headerBytesMax, messageBytesMax } from '../limits.ts';
import { readPlainRequest } from './plain-request.ts';

const line = 'POST /order HTTP/1.1\r\n';
const fields = ['Host: shop', 'Content-Type: application/json', 'X-Client-Id: c', 'x-client-secret:\t s \t'];

function request(more: readonly string[] = ['content-length: 2'], body = '{}', start = line): Buffer {
  return Buffer.from(`${start}${[...fields, ...more].join('\r\n')}\r\n\r\n${body}`, 'latin1');
}

const read = (bytes: Buffer) => readPlainRequest(bytes, line);

test('a plain request is its headers and its body', () => {
  const plain = read(
    request(['content-length: 2', 'Connection: Keep-Alive', 'accept: */*', 'X-Request-Id:', 'traceparent: 00']),
  );
  expect(plain).toEqual({
    headers: {
      host: 'shop',
      'content-type': 'application/json',
      'content-length': '2',
      'x-client-id': 'c',
      'x-client-secret': 's',
      'x-request-id': '',
    },
    body: Buffer.from('{}'),
  });
});

test('every beginning of a plain request may become one', () => {
  const whole = request();
  for (let length = 1; length < whole.length; length += 1) {
    expect(read(whole.subarray(0, length)), whole.toString('latin1', 0, length)).toBe('incomplete');
  }
});

test.each([
  ['another method', request(undefined, undefined, 'GET /order HTTP/1.1\r\n')],
  ['another path', request(undefined, undefined, 'POST /orders HTTP/1.1\r\n')],
  ['a query', request(undefined, undefined, 'POST /order?a=1 HTTP/1.1\r\n')],
  ['HTTP/1.0', request(undefined, undefined, 'POST /order HTTP/1.0\r\n')],
  ['an empty line before it', request(undefined, undefined, `\r\n${line}`)],
  ['a line that ends with LF alone', request(undefined, undefined, 'POST /order HTTP/1.1\n')],
  ['no host', Buffer.from(`${line}content-length: 2\r\n\r\n{}`)],
  ['no headers', Buffer.from(`${line}\r\n`)],
  ['no length', request([])],
  ['an empty length', request(['content-length:'])],
  ['a length with a sign', request(['content-length: +2'])],
  ['a list of lengths', request(['content-length: 2, 2'])],
  ['two lengths', request(['content-length: 2', 'content-length: 2'])],
  ['a length above the limit', request([`content-length: ${messageBytesMax + 1}`])],
  ['a length that is too long', request(['content-length: 000002'])],
  ['more than its body', request(undefined, '{}P')],
  ['chunks', request(['transfer-encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n')],
  ['chunks and a length', request(['content-length: 2', 'Transfer-Encoding: chunked'])],
  ['an encoding that is empty', request(['content-length: 2', 'transfer-encoding:'])],
  ['an expectation', request(['content-length: 2', 'expect: 100-continue'])],
  ['an upgrade', request(['content-length: 2', 'upgrade: h2c'])],
  ['a connection that ends', request(['content-length: 2', 'connection: close'])],
  ['a connection with more to say', request(['content-length: 2', 'connection: keep-alive, x-client-id'])],
  ['a proxy’s connection', request(['content-length: 2', 'proxy-connection: close'])],
  ['two hosts', request(['content-length: 2', 'host: other'])],
  ['two client ids', request(['content-length: 2', 'X-CLIENT-ID: c'])],
  ['a folded line', request(['content-length: 2', 'x: a', ' b'])],
  ['a blank before the colon', request(['content-length : 2'])],
  ['a name with a blank', request(['content-length: 2', 'a b: c'])],
  ['a line without a colon', request(['content-length: 2', 'abc'])],
  ['a line without a name', request(['content-length: 2', ': c'])],
  ['a NUL in a value', request(['content-length: 2', 'x: \u0000'])],
  ['a CR in a value', request(['content-length: 2', 'x: a\rb'])],
  ['a LF in a value', request(['content-length: 2', 'x: a\nb'])],
  ['a value beyond ASCII', request(['content-length: 2', 'x: é'])],
  ['a hundred lines', request(['content-length: 2', ...Array.from({ length: 100 }, (_, index) => `x${index}: y`)])],
  ['a head above the limit', request(['content-length: 2', `x: ${'y'.repeat(headerBytesMax)}`])],
  ['a head above the limit that has no end yet', request([`x: ${'y'.repeat(headerBytesMax)}`]).subarray(0, -6)],
])('a request with %s is left to others', (_, bytes) => {
  expect(read(bytes)).toBe(undefined);
});

test('a body at the limit is read', () => {
  const body = 'x'.repeat(messageBytesMax);
  expect(read(request([`content-length: ${messageBytesMax}`], body))).toMatchObject({ body: Buffer.from(body) });
});
