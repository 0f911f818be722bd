import { expect, test } from 'vitest';
import { readConfig } from './config.ts';

test('without any variable it serves this machine alone, from the embedded database', () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    host: '127.0.0.1',
    httpPort: 8080,
    grpcPort: 9090,
    baseUrl: undefined,
    databaseUrl: undefined,
    checkoutTemplate: undefined,
    rateLimit: undefined,
    secretsKey: undefined,
    webhookAllowPrivate: false,
    drainDelayMs: undefined,
    tls: undefined,
    trustProxy: undefined,
  });
  expect(config.dataDir).toMatch(/\/\.data$/);
});

test('reads every variable', () => {
  const env = {
    HOST: '0.0.0.0',
    HTTP_PORT: '0',
    GRPC_PORT: '65535',
    BASE_URL: 'https://pay.example.com/gateway/',
    DATABASE_URL: 'postgres://user:pass@db.example.com/orders',
    DATA_DIR: '/var/lib/gateway',
    CHECKOUT_URL: 'https://checkout.example.com/pay/{order_token}?from=link',
    RATE_LIMIT: '200',
    SECRETS_KEY: `${'A'.repeat(42)}E=`,
    WEBHOOK_ALLOW_PRIVATE: '1',
    DRAIN_DELAY_MS: '10000',
    TLS_CERT_FILE: '/etc/gateway/cert.pem',
    TLS_KEY_FILE: '/etc/gateway/key.pem',
    TLS_CLIENT_CA_FILE: '/etc/gateway/ca.pem',
    TRUST_PROXY: '10.0.0.0/8',
  };
  expect(readConfig(env)).toEqual({
    host: '0.0.0.0',
    httpPort: 0,
    grpcPort: 65_535,
    baseUrl: 'https://pay.example.com/gateway',
    databaseUrl: 'postgres://user:pass@db.example.com/orders',
    dataDir: '/var/lib/gateway',
    checkoutTemplate: 'https://checkout.example.com/pay/{order_token}?from=link',
    rateLimit: 200,
    secretsKey: Buffer.from([...new Uint8Array(31), 1]),
    webhookAllowPrivate: true,
    drainDelayMs: 10_000,
    tls: {
      certFile: '/etc/gateway/cert.pem',
      keyFile: '/etc/gateway/key.pem',
      clientCaFile: '/etc/gateway/ca.pem',
    },
    trustProxy: expect.any(Function),
  });
});

test.each([
  [{ HTTP_PORT: '65536' }, 'HTTP_PORT'],
  [{ HTTP_PORT: '80a' }, 'HTTP_PORT'],
  [{ GRPC_PORT: '-1' }, 'GRPC_PORT'],
  [{ HTTP_PORT: '9090' }, 'HTTP_PORT and GRPC_PORT must differ'],
  [{ HOST: 'not a host' }, 'HOST'],
  [{ BASE_URL: 'pay.example.com' }, 'BASE_URL'],
  [{ BASE_URL: 'https://pay.example.com/?a=b' }, 'BASE_URL'],
  [{ BASE_URL: 'https://pay.example.com/a:b' }, 'BASE_URL must be an absolute http or https URL'],
  [{ BASE_URL: 'https://pay.example.com/a*b' }, 'with only letters, digits and -._~/ in its path'],
  [{ DATABASE_URL: 'mysql://db/x' }, 'DATABASE_URL'],
  [{ CHECKOUT_URL: 'https://checkout.example.com/' }, 'CHECKOUT_URL'],
  [{ CHECKOUT_URL: 'https://{order_token}.example.com/' }, 'CHECKOUT_URL'],
  [{ RATE_LIMIT: '0' }, 'RATE_LIMIT'],
  [{ SECRETS_KEY: Buffer.alloc(31).toString('base64') }, 'SECRETS_KEY must be 32 bytes in base64'],
  [{ SECRETS_KEY: Buffer.alloc(33).toString('base64') }, 'SECRETS_KEY'],
  [{ SECRETS_KEY: Buffer.alloc(32).toString('hex') }, 'SECRETS_KEY'],
  [{ DRAIN_DELAY_MS: '600001' }, 'DRAIN_DELAY_MS must be a whole number from 0 to 600000'],
  [{ TRUST_PROXY: 'proxy.example.com' }, 'TRUST_PROXY must be a number of proxies from 1 to 9, or addresses'],
  [{ TLS_CERT_FILE: 'cert.pem' }, 'TLS_CERT_FILE and TLS_KEY_FILE must be set together'],
  [{ TLS_CLIENT_CA_FILE: 'ca.pem' }, 'TLS_CERT_FILE and TLS_KEY_FILE must be set together'],
  [{ DRAIN_DELAY_MS: '5s' }, 'DRAIN_DELAY_MS'],
  [{ WEBHOOK_ALLOW_PRIVATE: 'yes' }, 'WEBHOOK_ALLOW_PRIVATE must be 0 or 1'],
])('rejects %j', (env, message) => {
  expect(() => readConfig(env)).toThrow(message);
});

test('reports all problems at once, and no value', () => {
  const env = { HTTP_PORT: 'secret1', GRPC_PORT: 'secret2', DATABASE_URL: 'secret3', SECRETS_KEY: 'secret4' };
  expect(() => readConfig(env)).toThrow(/^HTTP_PORT .+\nGRPC_PORT .+\nDATABASE_URL .+\nSECRETS_KEY .+$/);
  expect(() => readConfig(env)).not.toThrow(/secret/);
});
