import { expect, test } from 'vitest';
import { parseTrustProxy, remoteAddressOf } from './remote-address.ts';

const request = (remoteAddress: string | undefined, forwardedFor?: string) => ({
  socket: { remoteAddress },
  headers: forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor },
});

test.each([
  ['no proxy is trusted', undefined, '10.0.0.1', '192.0.2.7', '10.0.0.1'],
  ['an untrusted address forwards', '10.0.0.1', '10.0.0.2', '192.0.2.7', '10.0.0.2'],
  ['a trusted address forwards', '10.0.0.1', '10.0.0.1', '192.0.2.7', '192.0.2.7'],
  ['a trusted address forwards nothing', '10.0.0.1', '10.0.0.1', undefined, '10.0.0.1'],
  ['a client claims an address', '10.0.0.1', '10.0.0.1', '198.51.100.1, 192.0.2.7', '192.0.2.7'],
  ['two trusted networks forward', '10.0.0.0/8, fd00::/8', '10.0.0.1', '192.0.2.7, fd00::1', '192.0.2.7'],
  ['a trusted address is mapped', '10.0.0.1', '::ffff:10.0.0.1', '192.0.2.7', '192.0.2.7'],
  ['a client connects from a mapped address', undefined, '::ffff:10.0.0.1', undefined, '10.0.0.1'],
  ['a proxy forwards a mapped address', '1', '10.0.0.1', '::ffff:192.0.2.7', '192.0.2.7'],
  ['a client connects over IPv6', undefined, 'fe80::1%eth0', undefined, 'fe80::1%eth0'],
  ['a number of proxies is trusted', '2', '10.0.0.1', '198.51.100.1, 192.0.2.7, 10.0.0.9', '192.0.2.7'],
  ['the forwarded value is not an address', '1', '10.0.0.1', 'Erika Mustermann', '10.0.0.1'],
  ['the connection is closed', '1', undefined, '192.0.2.7', undefined],
])('finds the address of the client if %s', (_, trusted, address, forwardedFor, expected) => {
  const trustProxy = trusted === undefined ? undefined : parseTrustProxy(trusted);
  expect(remoteAddressOf(request(address, forwardedFor), trustProxy)).toBe(expected);
});

test.each(['0', '10', '10.0.0.256', '10.0.0.0/33', 'proxy.example.com', '10.0.0.1,'])('rejects %s', (text) => {
  expect(parseTrustProxy(text)).toBe(undefined);
});
