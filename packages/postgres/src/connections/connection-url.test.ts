import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { ConnectionUrlError, parseConnectionUrl } from './connection-url.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-connection-url-'));
const noCertificate = join(folder, 'empty.crt');
writeFileSync(noCertificate, 'empty');
afterAll(() => rmSync(folder, { recursive: true }));

const tlsOf = (url: string) => {
  const { tls } = parseConnectionUrl(url);
  if (tls === undefined) return false;
  if (tls.isOptional) return 'prefer';
  return tls.optionsFor('db.example.com').rejectUnauthorized === false ? 'require' : 'verified';
};

test.each([
  ['postgres://localhost/orders', false],
  ['postgresql://user:pass@127.0.0.1:5432/orders', false],
  ['postgres:///orders', false],
  ['postgres://%2Frun%2Fpostgresql/orders', false],
  ['postgres://db.example.com/orders', 'verified'],
  ['postgres://127.example.com/orders', 'verified'],
  ['postgres://localhost,db.example.com/orders', 'verified'],
  ['postgres://localhost:5432,127.0.0.1:5433/orders', false],
  ['postgres://db.example.com/orders?sslmode=disable', false],
  ['postgres://db.example.com/orders?sslmode=require', 'require'],
  ['postgres://db.example.com/orders?ssl=prefer', 'prefer'],
  ['postgres://localhost/orders?sslmode=verify-full', 'verified'],
  ['postgres://localhost/orders?sslrootcert=system', 'verified'],
])('the TLS mode of %s is %s', (url, expected) => {
  expect(tlsOf(url)).toBe(expected);
});

test('PGHOST replaces a host that the URL does not name', () => {
  vi.stubEnv('PGHOST', 'db.example.com');
  expect(tlsOf('postgres:///orders')).toBe('verified');
  vi.stubEnv('PGHOST', '/run/postgresql');
  expect(tlsOf('postgres:///orders')).toBe(false);
  vi.unstubAllEnvs();
});

test('the driver gets the URL without sslrootcert, and the name contains no credentials', () => {
  const url = 'postgres://me:pa%20ss@a.example:1,b.example:2/orders?application_name=x&sslrootcert=system';
  expect(parseConnectionUrl(url)).toMatchObject({
    driverUrl: 'postgres://me:pa%20ss@a.example:1,b.example:2/orders?application_name=x',
    name: 'a.example:1,b.example:2/orders',
  });
  expect(parseConnectionUrl('postgres://db.example.com/orders').name).toBe('db.example.com:5432/orders');
});

test.each([
  ['mysql://user:hidden@db.example.com/orders', 'must be a URL such as postgres://'],
  ['user:hidden@db.example.com', 'must be a URL such as postgres://'],
  ['postgres://user:hid@den@db.example.com/orders', undefined],
  ['postgres://user:hidden@db.example.com:port/orders', 'must be a URL such as postgres://'],
  [
    'postgres://user:hidden@db.example.com/orders?sslmode=verify',
    'has sslmode "verify", which must be one of disable,',
  ],
  ['postgres://user:hidden@db.example.com/orders?sslrootcert=/nowhere.crt', `"/nowhere.crt", which can't be read`],
  [`postgres://user:hidden@db.example.com/orders?sslrootcert=${noCertificate}`, 'must hold a certificate in PEM'],
])('parsing %s reports %j without the password', (url, message) => {
  if (message === undefined) return expect(parseConnectionUrl(url).name).toBe('db.example.com:5432/orders');
  expect(() => parseConnectionUrl(url)).toThrow(ConnectionUrlError);
  expect(() => parseConnectionUrl(url)).toThrow(message);
  expect(() => parseConnectionUrl(url)).not.toThrow('hidden');
});
