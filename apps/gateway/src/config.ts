import { resolve } from 'node:path';
import { defaultDataDir } from '@gateway/dev-postgres';
import { type CheckoutTemplate, parseCheckoutTemplate } from '@gateway/domain/checkout-link';
import { type BaseUrl, parseBaseUrl } from '@gateway/domain/payment-link';
import { parseTrustProxy, type TrustProxy } from './remote-address.ts';

/** Files in PEM. They are read at the start and when they change. */
export interface TlsFiles {
  /** With the certificates between it and its root. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Signs the certificates that clients of the gRPC port must have; absent: they need none. */
  readonly clientCaFile: string | undefined;
}

export interface Config {
  /** The address that both listeners bind, or a name of it. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Absent: `http://localhost:` (https with TLS), or the address where that leads elsewhere, and the port that the HTTP listener got. */
  readonly baseUrl: BaseUrl | undefined;
  /** Absent: the embedded PostgreSQL, with its data in `dataDir`. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  /** Calls a second that each merchant may make in this process; absent: as many as the gateway can serve. */
  readonly rateLimit: number | undefined;
  /** Where the payment page's Pay button leads; absent: the page has none. */
  readonly checkoutTemplate: CheckoutTemplate | undefined;
  /** Encrypts signing secrets, 32 bytes; absent: see `findSecretsKey`. */
  readonly secretsKey: Uint8Array | undefined;
  /** Whether webhooks may be sent over http and to addresses that are not public. */
  readonly webhookAllowPrivate: boolean;
  /** How long requests go on at a stop while health checks fail. Absent: 0 on a terminal, else 5 s. */
  readonly drainDelayMs: number | undefined;
  /** Absent: both ports speak without TLS. */
  readonly tls: TlsFiles | undefined;
  /** Whose X-Forwarded-For counts; absent: nobody's. */
  readonly trustProxy: TrustProxy | undefined;
}

/** The text of `pnpm start --help`. The README says more. */
export const startUsage = `Usage: pnpm start, with the configuration in environment variables:
  HOST                  the address to listen on (127.0.0.1)
  HTTP_PORT, GRPC_PORT  0 takes a free port (8080, 9090)
  BASE_URL              where others reach the gateway (http://localhost: and the HTTP port)
  DATABASE_URL          postgres://... (an embedded PostgreSQL)
  DATA_DIR              the embedded PostgreSQL's data (.data/)
  CHECKOUT_URL          where the payment page's Pay button leads, with {order_token} (no button)
  RATE_LIMIT            calls a second that each merchant may make in one process (no limit)
  SECRETS_KEY           encrypts signing secrets: 32 bytes in base64 (a file in DATA_DIR; with DATABASE_URL none)
  WEBHOOK_ALLOW_PRIVATE 1 sends webhooks over http and to private addresses too: for development (0)
  DRAIN_DELAY_MS        how long requests go on at a stop while health checks fail (5000; 0 on a terminal)
  TLS_CERT_FILE, TLS_KEY_FILE  serve both ports over TLS with these PEM files, read again when they change (no TLS)
  TLS_CLIENT_CA_FILE    gRPC clients need a certificate that this one has signed (none)
  TRUST_PROXY           proxies whose X-Forwarded-For counts: addresses, networks, or how many proxies there are (none)
`;

/** Reads the configuration from environment variables. Throws one error with all problems, one a line. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const read = <Value>(
    name: string,
    byDefault: Value,
    parse: (text: string) => Value | undefined,
    rule: string,
  ): Value => {
    const text = env[name];
    if (text === undefined || text === '') return byDefault;
    const value = parse(text);
    if (value === undefined) problems.push(`${name} ${rule}`);
    return value ?? byDefault;
  };
  const config: Config = {
    host: read(
      'HOST',
      '127.0.0.1',
      (text) => (/\s/.test(text) ? undefined : text),
      'must be an address or a host name',
    ),
    httpPort: read('HTTP_PORT', 8080, parsePort, 'must be a port from 0 to 65535'),
    grpcPort: read('GRPC_PORT', 9090, parsePort, 'must be a port from 0 to 65535'),
    baseUrl: read(
      'BASE_URL',
      undefined,
      parseBaseUrl,
      'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path',
    ),
    databaseUrl: read('DATABASE_URL', undefined, parseDatabaseUrl, 'must be a postgres:// URL'),
    dataDir: read('DATA_DIR', defaultDataDir, (text) => resolve(text), ''),
    rateLimit: read('RATE_LIMIT', undefined, parseRate, 'must be a whole number from 1 to 1000000'),
    checkoutTemplate: read(
      'CHECKOUT_URL',
      undefined,
      parseCheckoutTemplate,
      'must be an absolute http or https URL with {order_token} once in its path or query',
    ),
    secretsKey: read('SECRETS_KEY', undefined, parseSecretsKey, 'must be 32 bytes in base64'),
    webhookAllowPrivate: read('WEBHOOK_ALLOW_PRIVATE', false, parseFlag, 'must be 0 or 1'),
    drainDelayMs: read('DRAIN_DELAY_MS', undefined, parseDelay, 'must be a whole number from 0 to 600000'),
    tls: readTlsFiles(env),
    trustProxy: read(
      'TRUST_PROXY',
      undefined,
      parseTrustProxy,
      'must be a number of proxies from 1 to 9, or addresses and networks separated by commas',
    ),
  };
  if (config.tls === undefined && (env.TLS_CERT_FILE || env.TLS_KEY_FILE || env.TLS_CLIENT_CA_FILE))
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must be set together');
  if (config.httpPort !== 0 && config.httpPort === config.grpcPort)
    problems.push('HTTP_PORT and GRPC_PORT must differ');
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

/** The environment is not a configuration; the message names every problem without a value. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

function parsePort(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined;
}

function parseRate(text: string): number | undefined {
  return /^[1-9]\d{0,6}$/.test(text) && Number(text) <= 1_000_000 ? Number(text) : undefined;
}

/** A key of AES-256 in base64, as `openssl rand -base64 32` prints it. */
export function parseSecretsKey(text: string): Uint8Array | undefined {
  return /^[0-9A-Za-z+/]{43}=$/.test(text) ? Buffer.from(text, 'base64') : undefined;
}

function readTlsFiles(env: Readonly<Record<string, string | undefined>>): TlsFiles | undefined {
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, TLS_CLIENT_CA_FILE: clientCaFile } = env;
  return certFile && keyFile ? { certFile, keyFile, clientCaFile: clientCaFile || undefined } : undefined;
}

function parseDelay(text: string): number | undefined {
  return /^\d{1,6}$/.test(text) && Number(text) <= 600_000 ? Number(text) : undefined;
}

function parseFlag(text: string): boolean | undefined {
  return text === '1' ? true : text === '0' ? false : undefined;
}

function parseDatabaseUrl(text: string): string | undefined {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'postgres:' || protocol === 'postgresql:' ? text : undefined;
}
