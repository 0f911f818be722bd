import { expect, test } from 'vitest';
import { configWarnings } from './config-warnings.ts';

const safe = {
  host: '127.0.0.1',
  baseUrl: 'http://localhost:8080',
  console: true,
  tls: undefined,
  trustProxy: undefined,
  secretsKeys: [],
};
const tls = { certFile: 'cert.pem', keyFile: 'key.pem', clientCaFile: undefined };

test.each([
  ['the default addresses', {}, []],
  ['no SECRETS_KEY', { secretsKeys: undefined }, ['SECRETS_KEY is not set']],
  ['HOST=::1', { host: '::1' }, []],
  ['HOST=::ffff:127.0.0.1', { host: '::ffff:127.0.0.1' }, []],
  ['HOST=0.0.0.0', { host: '0.0.0.0' }, ['credentials are sent without TLS']],
  ['HOST=::', { host: '::' }, ['credentials are sent without TLS']],
  ['HOST=0.0.0.0 with TLS', { host: '0.0.0.0', tls }, []],
  ['HOST=0.0.0.0 behind a proxy', { host: '0.0.0.0', trustProxy: '10.0.0.0/8' }, []],
  ['a public BASE_URL with http', { baseUrl: 'http://pay.example.com' }, ["merchants can't sign in to the console"]],
  ['a public BASE_URL with http and no console', { baseUrl: 'http://pay.example.com', console: false }, []],
  ['a public BASE_URL with https', { baseUrl: 'https://pay.example.com' }, []],
])('%s', (_, changes, expected) => {
  const messages = configWarnings({ ...safe, ...changes }).map(([, message]) => message);
  expect(messages).toEqual(expected.map((start) => expect.stringMatching(`^${start}`)));
});

test('the lines name the address that is unsafe', () => {
  const fields = configWarnings({ ...safe, host: '0.0.0.0', baseUrl: 'http://pay.example.com' }).map(([each]) => each);
  expect(fields).toEqual([{ host: '0.0.0.0' }, { baseUrl: 'http://pay.example.com' }]);
});
