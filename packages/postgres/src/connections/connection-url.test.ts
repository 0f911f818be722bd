import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvalidValue } from '@order-gateway/runtime/variables';
import { afterAll, expect, test, vi } from 'vitest';
import { parseConnectionUrl } from './connection-url.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-connection-url-'));
const invalidCertificateFile = join(folder, 'not-a-certificate.crt');
writeFileSync(invalidCertificateFile, 'not a certificate');
afterAll(() => rmSync(folder, { recursive: true }));

const tlsOf = (url: string) => {
  const { tls } = parseConnectionUrl(url);
  if (tls === undefined) return 'disable';
  if (tls.isOptional) return 'prefer';
  return tls.optionsFor('db.example.com').rejectUnauthorized === false ? 'require' : 'verified';
};

test.each([
  ['postgres://localhost/orders', 'disable'],
  ['postgresql://user:pass@127.0.0.1:5432/orders', 'disable'],
  ['postgres:///orders', 'disable'],
  ['postgres://%2Frun%2Fpostgresql/orders', 'disable'],
  ['postgres://db.example.com/orders', 'verified'],
  ['postgres://127.example.com/orders', 'verified'],
  ['postgres://localhost,db.example.com/orders', 'verified'],
  ['postgres://localhost:5432,127.0.0.1:5433/orders', 'disable'],
  ['postgres://db.example.com/orders?sslmode=disable', 'disable'],
  ['postgres://db.example.com/orders?sslmode=require', 'require'],
  ['postgres://db.example.com/orders?ssl=prefer', 'prefer'],
  ['postgres://localhost/orders?sslmode=verify-full', 'verified'],
  ['postgres://localhost/orders?sslrootcert=system', 'verified'],
])('the TLS mode of %s is %s', (url, expected) => {
  expect(tlsOf(url)).toBe(expected);
});

test('PGHOST supplies the host if the URL has none', () => {
  vi.stubEnv('PGHOST', 'db.example.com');
  expect(tlsOf('postgres:///orders')).toBe('verified');
  vi.stubEnv('PGHOST', '/run/postgresql');
  expect(tlsOf('postgres:///orders')).toBe('disable');
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

test('the driver does not send the parameters of libpq that are ignored', () => {
  const url = 'postgres://db.example.com/orders?sslmode=verify-full&channel_binding=require&connect_timeout=10&jit=on';
  expect(parseConnectionUrl(url).driverUrl).toBe('postgres://db.example.com/orders?sslmode=verify-full&jit=on');
});

test('a password may contain an unescaped @', () => {
  const { name } = parseConnectionUrl('postgres://user:hid@den@db.example.com/orders');
  expect(name).toBe('db.example.com:5432/orders');
});

test.each([
  ['mysql://user:hidden@db.example.com/orders', 'a URL such as postgres://'],
  ['user:hidden@db.example.com', 'a URL such as postgres://'],
  ['postgres://user:hidden@db.example.com:port/orders', 'a URL such as postgres://'],
  [
    'postgres://user:hidden@db.example.com/orders?sslmode=verify',
    'has sslmode "verify", which must be one of disable,',
  ],
  ['postgres://user:hidden@db.example.com/orders?sslrootcert=/nowhere.crt', `"/nowhere.crt", which can't be read`],
  [
    `postgres://user:hidden@db.example.com/orders?sslrootcert=${invalidCertificateFile}`,
    'must hold a certificate in PEM',
  ],
  ['postgres://user:hidden#1@db.example.com/orders', 'such as # as %23 and % as %25'],
  ['postgres://user:hidden%@db.example.com/orders', 'such as # as %23 and % as %25'],
  ['postgres://user:hidden@db.example.com/orders?sslcert=a.crt', 'has the parameter sslcert, which is not supported'],
  ['postgres://db.example.com/orders?user=me&password=hidden', 'has the parameter password, which is not supported'],
  [
    'postgres://user:hidden@db.example.com/orders?sslmode=require&channel_binding=require',
    'has channel_binding=require, which needs sslmode=verify-full instead',
  ],
])('parsing %s reports %j without the password', (url, message) => {
  expect(() => parseConnectionUrl(url)).toThrow(InvalidValue);
  expect(() => parseConnectionUrl(url)).toThrow(message);
  expect(() => parseConnectionUrl(url)).not.toThrow('hidden');
});
