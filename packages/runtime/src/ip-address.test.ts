import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isPublicAddress, literalAddressOf, urlProblem } from './ip-address.ts';

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.15.0.1',
  '172.32.0.1',
  '2606:4700::1111',
  '2a00:1450:4001::200e',
  '2a00::200:5eff:fe00:1',
])('%s is public', (address) => expect(isPublicAddress(address)).toBe(true));

test.each([
  ['this machine', ['127.0.0.1', '127.255.255.254', '::1', '0.0.0.0', '0.1.2.3', '::']],
  ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd00::1', 'fec0::1']],
  ['link-local and metadata', ['169.254.169.254', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'fd00:ec2::254']],
  ['carrier-grade NAT', ['100.64.0.1', '100.127.255.255', '100.100.100.200']],
  ['multicast and broadcast', ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1']],
  ['reserved', ['192.0.0.8', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '240.0.0.1', '2001:db8::1']],
  ['not allocated', ['::2', '1::1', '4000::1', '9000::1']],
])('addresses that are not public: %s', (_, addresses) => {
  for (const address of addresses) expect(isPublicAddress(address), address).toBe(false);
});

/** Returns an IPv4 address as two groups of an IPv6 address. */
const groupsOf = (ipv4: string) => {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(':');
};
const group = fc.nat({ max: 0xffff }).map((value) => value.toString(16));

test.each<[string, (ipv4: string, prefix: readonly string[]) => string]>([
  ['IPv4-compatible (RFC 4291, 2.5.5.1), dotted', (ipv4) => `::${ipv4}`],
  ['IPv4-compatible, hexadecimal', (ipv4) => `::${groupsOf(ipv4)}`],
  ['IPv4-mapped (RFC 4291, 2.5.5.2), dotted', (ipv4) => `::ffff:${ipv4}`],
  ['IPv4-mapped, hexadecimal', (ipv4) => `::ffff:${groupsOf(ipv4)}`],
  ['IPv4-translated (RFC 2765)', (ipv4) => `::ffff:0:${groupsOf(ipv4)}`],
  ['NAT64 (RFC 6052)', (ipv4) => `64:ff9b::${groupsOf(ipv4)}`],
  ['local NAT64 (RFC 8215)', (ipv4, [a, b, c]) => `64:ff9b:1:${a}:${b}:${c}:${groupsOf(ipv4)}`],
  ['6to4 (RFC 3056)', (ipv4, [a, b]) => `2002:${groupsOf(ipv4)}::${a}:${b}`],
  ['Teredo (RFC 4380)', (ipv4, [a, b, c, d]) => `2001:0:${a}:${b}:${c}:${d}:${groupsOf(ipv4)}`],
  ['ISATAP (RFC 5214), local IPv4', (ipv4, [a, b, c]) => `2a00:${a}:${b}:${c}:0:5efe:${groupsOf(ipv4)}`],
  ['ISATAP, global IPv4', (ipv4, [a, b, c]) => `2a00:${a}:${b}:${c}:200:5efe:${groupsOf(ipv4)}`],
])('no IPv6 address that embeds IPv4 is public: %s', (_, embed) => {
  const ipv4 = fc.oneof(fc.constantFrom('127.0.0.1', '169.254.169.254', '10.0.0.1', '8.8.8.8'), fc.ipV4());
  fc.assert(
    fc.property(ipv4, fc.tuple(group, group, group, group), (address, prefix) => {
      const embedded = embed(address, prefix);
      expect(isPublicAddress(embedded)).toBe(false);
      // A URL may write the same address in another way.
      expect(isPublicAddress(literalAddressOf(new URL(`https://[${embedded}]/`)) ?? '')).toBe(false);
    }),
  );
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
  ['https://[::127.0.0.1]/', '::7f00:1'],
  ['https://127.0.0.1.example.com/', undefined],
  ['https://localhost/', undefined],
])('the address in %s is %s', (url, address) => {
  expect(literalAddressOf(new URL(url))).toBe(address);
});

test.each([
  ['http://localhost:3000/hook', true],
  ['http://127.0.0.1:3000/', true],
  ['https://[::1]/', true],
  ['http://[::1]:3000', true],
  ['http://10.0.0.1/', false],
  ['https://192.168.1.1/', false],
  ['http://shop.example/', false],
])('%s is allowed if webhooks may be sent to this machine: %s', (url, isAllowed) => {
  expect(urlProblem(new URL(url), 'loopback') === undefined).toBe(isAllowed);
  expect(urlProblem(new URL(url), 'public')).toBeDefined();
});
