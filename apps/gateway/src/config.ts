import { resolve } from 'node:path';
import { defaultDataDir } from '@gateway/dev-postgres';
import { type CheckoutTemplate, parseCheckoutTemplate } from '@gateway/domain/checkout-link';
import { type BaseUrl, parseBaseUrl } from '@gateway/domain/payment-link';

export interface Config {
  /** The address that both listeners bind, or a name of it. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Metrics, for scrapers and not for the public. */
  readonly adminPort: number;
  /** Absent: `http://localhost:`, or the address where that leads elsewhere, and the port that the HTTP listener got. */
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
  readonly logLevel: LogLevel;
  /** The share of calls that are traced, 0 to 1; absent without a collector: none. */
  readonly tracedShare: number | undefined;
}

const logLevels = ['error', 'warn', 'info'] as const;

/** Calls are at level info, those that fail with a 5xx status at level error. */
type LogLevel = (typeof logLevels)[number];

/** The text of `pnpm start --help`. The README says more. */
export const startUsage = `Usage: pnpm start, with the configuration in environment variables:
  HOST                  the address to listen on (127.0.0.1)
  HTTP_PORT, GRPC_PORT  0 takes a free port (8080, 9090)
  ADMIN_PORT            metrics for Prometheus at /metrics, 0 takes a free port (9464)
  BASE_URL              where others reach the gateway (http://localhost: and the HTTP port)
  DATABASE_URL          postgres://... (an embedded PostgreSQL)
  DATA_DIR              the embedded PostgreSQL's data (.data/)
  CHECKOUT_URL          where the payment page's Pay button leads, with {order_token} (no button)
  RATE_LIMIT            calls a second that each merchant may make in one process (no limit)
  SECRETS_KEY           encrypts signing secrets: 32 bytes in base64 (a file in DATA_DIR; with DATABASE_URL none)
  WEBHOOK_ALLOW_PRIVATE 1 sends webhooks over http and to private addresses too: for development (0)
  LOG_LEVEL             error, warn or info (info)
  OTEL_EXPORTER_OTLP_ENDPOINT   sends traces to this OpenTelemetry collector, as http://localhost:4318 (no traces)
  OTEL_TRACES_SAMPLER_ARG       the share of calls that are traced, 0 to 1 (1)
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
    adminPort: read('ADMIN_PORT', 9464, parsePort, 'must be a port from 0 to 65535'),
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
    logLevel: read('LOG_LEVEL', 'info', parseLogLevel, `must be one of ${logLevels.join(', ')}`),
    // The collector's other settings are OpenTelemetry's own.
    tracedShare: env.OTEL_EXPORTER_OTLP_ENDPOINT
      ? read('OTEL_TRACES_SAMPLER_ARG', 1, parseShare, 'must be a number from 0 to 1')
      : undefined,
  };
  const ports = [config.httpPort, config.grpcPort, config.adminPort].filter((port) => port !== 0);
  if (new Set(ports).size < ports.length) problems.push('HTTP_PORT, GRPC_PORT and ADMIN_PORT must differ');
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

function parseLogLevel(text: string): LogLevel | undefined {
  return logLevels.find((level) => level === text);
}

function parseShare(text: string): number | undefined {
  return /^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined;
}

function parseFlag(text: string): boolean | undefined {
  return text === '1' ? true : text === '0' ? false : undefined;
}

function parseDatabaseUrl(text: string): string | undefined {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'postgres:' || protocol === 'postgresql:' ? text : undefined;
}
