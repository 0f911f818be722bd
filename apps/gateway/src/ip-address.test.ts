import { expect, test } from 'vitest';
import { isPublicAddress, literalAddressOf } from './ip-address.ts';

test.each(['8.8.8.8', '1.1.1.1', '172.15.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001::200e'])(
  '%s is public',
  (address) => expect(isPublicAddress(address)).toBe(true),
);

test.each([
  ['this machine', ['127.0.0.1', '127.255.255.254', '::1', '0.0.0.0', '0.1.2.3', '::']],
  ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd00::1', 'fec0::1']],
  ['link-local and metadata', ['169.254.169.254', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'fd00:ec2::254']],
  ['carrier-grade NAT', ['100.64.0.1', '100.127.255.255', '100.100.100.200']],
  ['multicast and broadcast', ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1']],
  ['reserved', ['192.0.0.8', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '240.0.0.1', '2001:db8::1']],
  ['IPv4 in IPv6', ['::ffff:10.0.0.1', '::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::a00:1', '64:ff9b:1::a00:1']],
  ['IPv4 in tunnels', ['2002:a00:1::', '2001::1', '::ffff:0:10.0.0.1']],
])('addresses that are not public: %s', (_, addresses) => {
  for (const address of addresses) expect(isPublicAddress(address), address).toBe(false);
});

test.each([
  ['https://127.0.0.1/', '127.0.0.1'],
  ['https://127.1/', '127.0.0.1'],
  ['https://0x7f.0.0.1/', '127.0.0.1'],
  ['https://2130706433/', '127.0.0.1'],
  ['https://0177.0.0.1/', '127.0.0.1'],
  ['https://①②⑦.0.0.1/', '127.0.0.1'],
  ['https://[::1]/', '::1'],
  ['https://[::ffff:10.0.0.1]/', '::ffff:a00:1'],
  ['https://127.0.0.1.example.com/', undefined],
  ['https://localhost/', undefined],
])('the address in %s is %s', (url, address) => {
  expect(literalAddressOf(new URL(url))).toBe(address);
});
