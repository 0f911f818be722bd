import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@order-gateway/runtime/process';
import { afterAll, expect, test } from 'vitest';
import { readConfig, similarVariables, startUsage } from './config.ts';

test('without any variables, the gateway serves only this machine, from the embedded database', () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    host: '127.0.0.1',
    httpPort: 8080,
    grpcPort: 9090,
    baseUrl: undefined,
    databaseUrl: undefined,
    checkoutPort: 8081,
    checkoutTemplate: undefined,
    checkoutMethod: 'get',
    migrate: true,
    rateLimit: undefined,
    secretsKeys: undefined,
    retentionDays: undefined,
    webhookAddresses: 'loopback',
    selfService: true,
    console: true,
    openId: undefined,
    operatorConsole: false,
    operatorDatabaseUrl: undefined,
    drainDelayMs: undefined,
    tls: undefined,
    trustProxy: undefined,
    logLevel: 'info',
    adminPort: 9464,
    workers: 1,
    tracesSampler: undefined,
  });
  expect(config.dataDir).toMatch(/\/\.data$/);
});

const secretsKey = `${'A'.repeat(42)}E=`;
const twoHosts =
  'postgres://user:pa,ss@db1.example.com:5432,db2.example.com:5433/orders?target_session_attrs=read-write';

test('reads every variable', () => {
  const env = {
    HOST: '0.0.0.0',
    HTTP_PORT: '0',
    GRPC_PORT: '65535',
    BASE_URL: 'https://pay.example.com/gateway/',
    DATABASE_URL: twoHosts,
    DATA_DIR: '/var/lib/gateway',
    MIGRATE: 'off',
    CHECKOUT_URL: 'https://checkout.example.com/pay/{order_token}?from=link',
    CHECKOUT_METHOD: 'post',
    CHECKOUT_PORT: '8181',
    RATE_LIMIT: '200',
    SECURITY_CONTACT: 'mailto:security@example.com',
    SECRETS_KEY: secretsKey,
    RETENTION_DAYS: '400',
    WEBHOOK_ALLOW_PRIVATE: '1',
    SELF_SERVICE: 'off',
    CONSOLE: 'on',
    OIDC_ISSUER: 'https://login.example.com',
    OIDC_CLIENT_ID: 'gateway',
    OIDC_CLIENT_SECRET: 'hidden',
    OPERATOR_CONSOLE: 'on',
    OPERATOR_DATABASE_URL: twoHosts,
    DRAIN_DELAY_MS: '10000',
    TLS_CERT_FILE: '/etc/gateway/cert.pem',
    TLS_KEY_FILE: '/etc/gateway/key.pem',
    TLS_CLIENT_CA_FILE: '/etc/gateway/ca.pem',
    TRUST_PROXY: '10.0.0.0/8',
    ADMIN_PORT: '9465',
    WORKERS: '4',
    LOG_LEVEL: 'warn',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.01',
  };
  expect(readConfig(env)).toEqual({
    host: '0.0.0.0',
    httpPort: 0,
    grpcPort: 65_535,
    baseUrl: 'https://pay.example.com/gateway',
    databaseUrl: twoHosts,
    dataDir: '/var/lib/gateway',
    migrate: false,
    checkoutPort: 8181,
    checkoutTemplate: 'https://checkout.example.com/pay/{order_token}?from=link',
    checkoutMethod: 'post',
    rateLimit: 200,
    securityContact: 'mailto:security@example.com',
    secretsKeys: [Buffer.from([...new Uint8Array(31), 1])],
    retentionDays: 400,
    webhookAddresses: 'any',
    selfService: false,
    console: true,
    openId: { issuer: 'https://login.example.com', clientId: 'gateway', clientSecret: 'hidden' },
    operatorConsole: true,
    operatorDatabaseUrl: twoHosts,
    drainDelayMs: 10_000,
    tls: { certFile: '/etc/gateway/cert.pem', keyFile: '/etc/gateway/key.pem', clientCaFile: '/etc/gateway/ca.pem' },
    trustProxy: '10.0.0.0/8',
    adminPort: 9_465,
    workers: 4,
    logLevel: 'warn',
    tracesSampler: { name: 'traceidratio', share: 0.01 },
  });
});

test('DATABASE_URL or WEBHOOK_ALLOW_PRIVATE=0 limits webhooks to public addresses, and a value of 1 allows any', () => {
  const DATABASE_URL = twoHosts;
  expect(readConfig({ DATABASE_URL }).webhookAddresses).toBe('public');
  expect(readConfig({ DATABASE_URL, WEBHOOK_ALLOW_PRIVATE: '1' }).webhookAddresses).toBe('any');
  expect(readConfig({ WEBHOOK_ALLOW_PRIVATE: '0' }).webhookAddresses).toBe('public');
});

test('reports variables that resemble those of the gateway', () => {
  const env = {
    METRICS_PORT: '9464',
    PORT: '80',
    DATABASE_URI: 'x',
    RETENTION_DAY: '1',
    GRPC_PORTS: '',
    HOST: 'localhost',
    HTTP_PORT: '0',
    DATABASE_URL_FILE: '/x',
    SECRETS_KEY_FILE: '/y',
    OTEL_SERVICE_NAME: 'x',
    HOME: '/root',
    HOSTNAME: 'x',
    USER: 'x',
    PATH: '/bin',
    PWD: '/',
    LANG: 'C',
    SHLVL: '1',
    TMPDIR: '/tmp',
    NODE_ENV: 'production',
    REDIS_PORT: 'tcp://10.0.0.1:6379',
    GATEWAY_SERVICE_PORT: '80',
    GITHUB_TOKEN: 'x',
  };
  expect(similarVariables(env)).toEqual([
    { variable: 'METRICS_PORT', meant: 'ADMIN_PORT' },
    { variable: 'PORT', meant: 'HTTP_PORT' },
    { variable: 'DATABASE_URI', meant: 'DATABASE_URL' },
    { variable: 'RETENTION_DAY', meant: 'RETENTION_DAYS' },
  ]);
});

const folder = mkdtempSync(join(tmpdir(), 'gateway-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(content: string): string {
  const file = join(folder, randomUUID());
  writeFileSync(file, content);
  return file;
}

test('reads secrets from files, without surrounding white space', () => {
  const url = 'postgres://user:pass@db.example.com/orders';
  const env = {
    DATABASE_URL_FILE: fileWith(`${url}\n`),
    SECRETS_KEY_FILE: fileWith(`${secretsKey}\r\n`),
    SECRETS_KEY: '',
  };
  expect(readConfig(env)).toMatchObject({ databaseUrl: url, secretsKeys: [Buffer.from(secretsKey, 'base64')] });
});

test('WORKERS=auto runs one worker per core', () => {
  expect(readConfig({ WORKERS: 'auto' }).workers).toBe(availableParallelism());
});

test('reads several keys in order, and rejects a comma after the last one', () => {
  const both = [secretsKey, Buffer.alloc(32, 2).toString('base64')];
  const { secretsKeys } = readConfig({ SECRETS_KEY: both.join(',') });
  expect(secretsKeys?.map((key) => Buffer.from(key).toString('base64'))).toEqual(both);
  expect(errorOf({ SECRETS_KEY: `${secretsKey},` })).toContain('SECRETS_KEY must be');
});

const portRule = 'must be a port from 0 to 65535';
const baseUrlRule =
  'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path';
const checkoutRule = 'must be an absolute http or https URL with {order_token} once in its path or query';
const databaseUrlRule = 'be a URL such as postgres://USER:PASSWORD@HOST:5432/DATABASE';
const keysError = 'SECRETS_KEY must be 32 bytes in base64, or several such keys separated by commas';
const emptyFile = fileWith('\n');
const wrongKeyFile = fileWith('hidden');

test.each<[Record<string, string>, string]>([
  [{ HTTP_PORT: '65536' }, `HTTP_PORT ${portRule}, not "65536"`],
  [{ HTTP_PORT: '80a' }, `HTTP_PORT ${portRule}, not "80a"`],
  [{ GRPC_PORT: '-1' }, `GRPC_PORT ${portRule}, not "-1"`],
  [{ GRPC_PORT: '90\n91' }, `GRPC_PORT ${portRule}, not "90\\n91"`],
  [{ HTTP_PORT: '9090' }, 'HTTP_PORT, GRPC_PORT and ADMIN_PORT must differ, not 9090, 9090, 9464'],
  [{ ADMIN_PORT: '8080' }, 'HTTP_PORT, GRPC_PORT and ADMIN_PORT must differ, not 8080, 9090, 8080'],
  [{ LOG_LEVEL: 'debug' }, 'LOG_LEVEL must be one of error, warn, info, not "debug"'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'must be an http or https URL, not "collector:4318"'],
  [{ OTEL_TRACES_SAMPLER_ARG: '1.5' }, 'OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "1.5"'],
  [{ HOST: 'not a host' }, 'HOST must be an address or a host name, not "not a host"'],
  [{ BASE_URL: 'pay.example.com' }, `BASE_URL ${baseUrlRule}, not "pay.example.com"`],
  [{ BASE_URL: 'https://pay.example.com/?a=b' }, `BASE_URL ${baseUrlRule}, not "https://pay.example.com/?a=b"`],
  [{ BASE_URL: 'https://pay.example.com/a:b' }, `BASE_URL ${baseUrlRule}, not "https://pay.example.com/a:b"`],
  [{ BASE_URL: 'https://me:hidden@pay.example.com' }, `BASE_URL ${baseUrlRule}, not "https://...@pay.example.com"`],
  [
    { CHECKOUT_URL: 'https://checkout.example.com/' },
    `CHECKOUT_URL ${checkoutRule}, not "https://checkout.example.com/"`,
  ],
  [{ CHECKOUT_URL: `https://{order_token}.example.com/${'x'.repeat(200)}` }, `${'x'.repeat(66)}..."`],
  [{ MIGRATE: 'no' }, 'MIGRATE must be on or off, not "no"'],
  [{ RATE_LIMIT: '0' }, 'RATE_LIMIT must be a whole number from 1 to 1000000, not "0"'],
  [{ DRAIN_DELAY_MS: '600001' }, 'DRAIN_DELAY_MS must be a whole number from 0 to 600000, not "600001"'],
  [{ DRAIN_DELAY_MS: '5s' }, 'DRAIN_DELAY_MS must be a whole number from 0 to 600000, not "5s"'],
  [{ RETENTION_DAYS: '36501' }, 'RETENTION_DAYS must be a whole number of days from 1 to 36500, not "36501"'],
  [
    { RETENTION_DAYS: '30', DATABASE_URL: 'postgres://localhost/x' },
    'RETENTION_DAYS 30 needs SECRETS_KEY, which recognizes erased orders',
  ],
  [
    { OIDC_ISSUER: 'http://login.example.com' },
    'OIDC_ISSUER must be an https URL, or an http URL of this machine, not "http://login.example.com"',
  ],
  [{ OIDC_CLIENT_ID: 'gateway' }, 'OIDC_CLIENT_ID needs OIDC_ISSUER and OIDC_CLIENT_SECRET'],
  [
    { OIDC_ISSUER: 'https://sign-in.example', OIDC_CLIENT_ID: 'gateway' },
    'OIDC_ISSUER and OIDC_CLIENT_ID need OIDC_CLIENT_SECRET',
  ],
  [
    { OPERATOR_CONSOLE: 'on', DATABASE_URL: 'postgres://localhost/x' },
    'OPERATOR_CONSOLE on needs SECRETS_KEY, which signs the sign-in links',
  ],
  [
    { TRUST_PROXY: 'proxy.example.com' },
    'TRUST_PROXY must be a number of proxies from 1 to 9, or addresses and networks separated by commas, not "proxy.example.com"',
  ],
  [{ TLS_CERT_FILE: 'cert.pem' }, 'TLS_CERT_FILE needs TLS_KEY_FILE'],
  [{ TLS_CLIENT_CA_FILE: 'ca.pem' }, 'TLS_CLIENT_CA_FILE needs TLS_CERT_FILE and TLS_KEY_FILE'],
  [
    { SECURITY_CONTACT: 'security@example.com' },
    'SECURITY_CONTACT must be a URI such as mailto:security@example.com or https://example.com/security, not "security@example.com"',
  ],
  [{ WEBHOOK_ALLOW_PRIVATE: 'yes' }, 'WEBHOOK_ALLOW_PRIVATE must be 0 or 1, not "yes"'],
  [{ DATABASE_URL: 'mysql://user:hidden@db/x' }, databaseUrlRule],
  [{ DATABASE_URL: 'hidden' }, databaseUrlRule],
  [
    { DATABASE_URL: 'postgres://user:hidden@db/x?sslmode=on' },
    'DATABASE_URL has sslmode "on", which must be one of disable, allow, prefer, require, verify-ca, verify-full',
  ],
  [
    { DATABASE_URL: 'postgres://user:hidden@db/x?sslrootcert=/nowhere/root.crt' },
    `DATABASE_URL has sslrootcert "/nowhere/root.crt", which can't be read (ENOENT)`,
  ],
  [
    { DATABASE_URL: 'postgres://user:hidden@db/x', DATABASE_URL_FILE: '/nowhere/url' },
    'DATABASE_URL and DATABASE_URL_FILE are both set: set only one of them',
  ],
  [
    { DATABASE_URL_FILE: '/nowhere/url' },
    'DATABASE_URL_FILE must be a file that can be read, not "/nowhere/url" (ENOENT)',
  ],
  [{ WORKERS: '0' }, 'WORKERS must be auto or a whole number from 1 to 128, not "0"'],
  [{ SECRETS_KEY_FILE: folder }, `SECRETS_KEY_FILE must be a file that can be read, not "${folder}" (EISDIR)`],
  [{ SECRETS_KEY_FILE: emptyFile }, `SECRETS_KEY_FILE must be a file with a value, but "${emptyFile}" is empty`],
  [{ SECRETS_KEY_FILE: wrongKeyFile }, keysError],
  [{ SECRETS_KEY: `hidden${Buffer.alloc(31).toString('base64')}` }, keysError],
  [{ SECRETS_KEY: Buffer.alloc(32).toString('hex') }, keysError],
])('rejects %j with a one-line error', (env, line) => {
  const message = errorOf(env);
  expect(message.endsWith(line) && !message.includes('\n')).toBe(true);
  expect(message).not.toContain('hidden');
});

function errorOf(env: Record<string, string>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof StartError) return error.message;
  }
  return 'no error';
}

test('reports all problems at once', () => {
  const env = { HTTP_PORT: 'x', GRPC_PORT: 'y', DATABASE_URL: 'secret3', SECRETS_KEY: 'secret4' };
  expect(errorOf(env)).toMatch(/^HTTP_PORT .+\nGRPC_PORT .+\nDATABASE_URL .+\nSECRETS_KEY .+$/);
  expect(errorOf(env)).not.toMatch(/secret/);
});

const example = await readFile(new URL('../../../.env.example', import.meta.url), 'utf8');

/** The usage, with one line for each variable. */
const usageLines = startUsage.replaceAll(/\n {3,}/g, ' ');

test('.env.example has the same defaults as the usage', () => {
  for (const [, names = '', text = ''] of usageLines.matchAll(/^ {2}([A-Z_]+(?:, [A-Z_]+)*) .*\((.+)\)$/gm)) {
    const defaults = text.split(/, |; /);
    for (const [index, name] of names.split(', ').entries()) {
      const [, value] = new RegExp(`^# ${name}=(.*)$`, 'm').exec(example) ?? [];
      // Where the usage describes the default in words, the file shows an example instead of a value.
      if (!/^(an?|no|none|never|http:.*) ?/.test(text)) expect(value, name).toBe(defaults[index] ?? defaults[0]);
    }
  }
});

test('.env.example and the usage list every variable', async () => {
  const read: string[] = [];
  const get = (_: object, name: string | symbol) => {
    if (!read.includes(String(name))) read.push(String(name));
    return undefined;
  };
  readConfig(new Proxy({}, { get }));
  // The usage names the `_FILE` variables of secrets below the table.
  const variables = read.filter((name) => !read.includes(name.replace(/_FILE$/, '')) || !name.endsWith('_FILE'));
  expect([...example.matchAll(/^# ?([A-Z_]+)=/gm)].map(([, name]) => name).sort()).toEqual(read.toSorted());
  const usage = [...usageLines.matchAll(/^ {2}([A-Z_]+(?:, [A-Z_]+)*) /gm)].flatMap(([, names = '']) =>
    names.split(', '),
  );
  expect(usage.toSorted()).toEqual(variables.toSorted());
});
