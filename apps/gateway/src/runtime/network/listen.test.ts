import { expect, test } from 'vitest';
import { defaultBaseUrl, hostInUrl } from './listen.ts';

test.each([
  ['127.0.0.1', 'http://localhost:8080'],
  ['0.0.0.0', 'http://localhost:8080'],
  ['::', 'http://localhost:8080'],
  ['::1', 'http://[::1]:8080'],
  ['192.0.2.1', 'http://192.0.2.1:8080'],
  ['2001:db8::1', 'http://[2001:db8::1]:8080'],
  ['fe80::1%eth0', 'http://localhost:8080'],
])('the base URL of a gateway that listens on %s is %s', (address, url) => {
  expect(defaultBaseUrl('http', hostInUrl(address), 8080)).toBe(url);
});
