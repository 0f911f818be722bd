import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { nameAndMeaning } from '@order-gateway/command/columns';
import { defaultDataDir } from '@order-gateway/dev-postgres';
import { parseBaseUrl, parseCheckoutTemplate } from '@order-gateway/domain/links';
import { ConnectionUrlError, parseConnectionUrl } from '@order-gateway/postgres/connections';
import { distance } from 'fastest-levenshtein';
import type { AllowedAddresses } from './network/ip-address.ts';
import { parseTrustProxy } from './network/remote-address.ts';
import type { TlsFiles } from './network/tls.ts';
import { parseSecretsKeys } from './secrets/secrets-keys.ts';
import { StartError } from './start/process.ts';

/** The values of the variables that {@link startUsage} explains. */
export type Config = Readonly<ReturnType<typeof readConfig>>;

/** A line for each variable, or for several: the names, the meaning and the default. docs/operations.md says more. */
export const variableHelp = `
  HOST                  the address to listen on (127.0.0.1)
  HTTP_PORT, GRPC_PORT  the ports; 0 selects a free one (8080, 9090)
  ADMIN_PORT            the port of /metrics for Prometheus; 0 selects a free one (9464)
  WORKERS               the number of processes that share both ports, or auto for one per core (1)
  BASE_URL              the public address of the gateway (http://localhost: and the HTTP port)
  DATABASE_URL          postgres://... (an embedded PostgreSQL)
  DATA_DIR              the embedded PostgreSQL's data (.data/)
  MIGRATE               off: never changes the schema, so run pnpm migrate first (on)
  CHECKOUT_URL          the address of the payment page's Pay button, with {order_token} (no button)
  SECURITY_CONTACT      the mailto: or https: URI in /.well-known/security.txt for reporting a vulnerability (no such file)
  RATE_LIMIT            the calls per second that each merchant may make in one process (no limit)
  SECRETS_KEY           encrypts signing secrets: 32 bytes in base64, earlier keys after commas (a file in DATA_DIR; with DATABASE_URL none)
  RETENTION_DAYS        erases customers' data from older orders; requires SECRETS_KEY (never)
  WEBHOOK_ALLOW_PRIVATE 1: also sends webhooks over http and to private addresses, for development (0; without DATABASE_URL only to this machine)
  SELF_SERVICE          off: only operators manage webhook endpoints, client secrets and brands, not merchants over the API (on)
  DRAIN_DELAY_MS        how long a stopping gateway accepts requests while its health checks fail (5000; 0 on a terminal)
  TLS_CERT_FILE, TLS_KEY_FILE  serve both ports over TLS with these PEM files, read again when they change (no TLS)
  TLS_CLIENT_CA_FILE    gRPC clients need a certificate signed by this authority (none)
  TRUST_PROXY           the proxies whose X-Forwarded-For is used: addresses, networks, or the number of proxies (none)
  LOG_LEVEL             error, warn or info (info)
  OTEL_EXPORTER_OTLP_ENDPOINT   sends traces to this OpenTelemetry collector, such as http://localhost:4318 (no traces)
  OTEL_TRACES_SAMPLER           which calls are traced, as in OpenTelemetry (parentbased_traceidratio)
  OTEL_TRACES_SAMPLER_ARG       the share of calls that are traced, 0 to 1 (1)
`;

/** The text of `pnpm start --help`. */
export const startUsage = `Usage: pnpm start [options]

Starts the gateway, with the configuration in environment variables.

Options:
  -h, --help     show this help
  -V, --version  show the version

Variables:
${variableHelp.trim().split('\n').map(inColumns).join('\n')}

DATABASE_URL_FILE and SECRETS_KEY_FILE name files that hold these values.
Exit codes: 0 stopped; 1 the start failed, or a stop took too long; 2 an
argument is wrong.
`;

function inColumns(line: string): string {
  const [, names = '', meaning = ''] = /^ *([A-Z_]+(?:, [A-Z_]+)*) +(.+)$/.exec(line) ?? [];
  return nameAndMeaning(names, meaning, 26);
}

/** The names of all variables. */
const variableNames: readonly string[] = startUsage.match(/\b(?:HOST|MIGRATE|WORKERS|[A-Z]+(?:_[A-Z]+)+)\b/g) ?? [];

/** Variables that other programs read for the same purpose. */
const foreignNames: Readonly<Record<string, string>> = {
  ...{ PORT: 'HTTP_PORT', METRICS_PORT: 'ADMIN_PORT', PROMETHEUS_PORT: 'ADMIN_PORT' },
  ...{ PUBLIC_URL: 'BASE_URL', POSTGRES_URL: 'DATABASE_URL', DB_URL: 'DATABASE_URL' },
};

/** A name is similar if it differs by at most one edit for this many letters. */
const lettersPerEdit = 5;

/** Variables that the gateway does not read, but that are similar to one that it reads, each with the latter. */
export function similarVariables(env: Readonly<Record<string, string | undefined>>) {
  return Object.keys(env).flatMap((variable) => {
    if (variableNames.includes(variable) || !env[variable]) return [];
    const isSimilar = (name: string) => distance(variable, name) <= name.length / lettersPerEdit;
    const meant = foreignNames[variable] ?? variableNames.find(isSimilar);
    return meant === undefined ? [] : [{ variable, meant }];
  });
}

/** Their values are never shown. Each can be read from the file that the variable with `_FILE` names. */
const secretNames: ReadonlySet<string> = new Set(['DATABASE_URL', 'SECRETS_KEY']);

/** The values of `OTEL_TRACES_SAMPLER` in OpenTelemetry's specification. */
const samplerNames = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

const logLevels = { error: 'error', warn: 'warn', info: 'info' } as const;

/** A larger number is a typing error: each worker has 18 database connections. */
const workersMax = 128;

/** Characters of a wrong value that an error shows. */
const shownMax = 100;

/**
 * Reads the configuration from environment variables and from the files of secrets. Throws one error with all problems, one
 * per line: the variable, what is allowed, and the value unless it is a secret.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>) {
  const problems: string[] = [];
  /** The value of a variable; `undefined` if it is not set, or not valid. */
  const read = <Value>(name: string, parse: (text: string) => Value | undefined, rule: string): Value | undefined => {
    try {
      const text = secretNames.has(name) ? readSecret(env, name) : env[name];
      if (text === undefined || text === '') return undefined;
      const value = parse(text);
      if (value === undefined) problems.push(`${name} ${rule}${secretNames.has(name) ? '' : `, not ${shown(text)}`}`);
      return value;
    } catch (error) {
      if (error instanceof StartError) problems.push(error.message);
      else if (error instanceof ConnectionUrlError) problems.push(`${name} ${error.message}`);
      else throw error;
      return undefined;
    }
  };
  const readNumber = (name: string, min: number, max: number, what = 'a whole number') =>
    read(name, wholeNumber(min, max), `must be ${what} from ${min} to ${max}`);
  const readPort = (name: string) => readNumber(name, 0, 65_535, 'a port');
  // Only its presence matters: OpenTelemetry reads the collector's settings itself.
  const hasCollector = read(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? '') || undefined,
    'must be an http or https URL',
  );
  const tracesSampler = {
    name:
      read(
        'OTEL_TRACES_SAMPLER',
        (text) => samplerNames.find((name) => name === text),
        `must be one of ${samplerNames.join(', ')}`,
      ) ?? 'parentbased_traceidratio',
    share: read('OTEL_TRACES_SAMPLER_ARG', parseShare, 'must be a number from 0 to 1') ?? 1,
  };
  const webhookAddresses: AllowedAddresses =
    read('WEBHOOK_ALLOW_PRIVATE', choice({ 0: 'public', 1: 'any' }), 'must be 0 or 1') ??
    (env.DATABASE_URL || env.DATABASE_URL_FILE ? 'public' : 'loopback');
  const config = {
    host:
      read('HOST', (text) => (/\s/.test(text) ? undefined : text), 'must be an address or a host name') ?? '127.0.0.1',
    httpPort: readPort('HTTP_PORT') ?? 8080,
    grpcPort: readPort('GRPC_PORT') ?? 9090,
    adminPort: readPort('ADMIN_PORT') ?? 9464,
    workers: read('WORKERS', parseWorkers, `must be auto or a whole number from 1 to ${workersMax}`) ?? 1,
    /**
     * Absent: `http://localhost:` (https with TLS), or HOST's address if `localhost` does not reach it, and the port that
     * was bound.
     */
    baseUrl: read(
      'BASE_URL',
      parseBaseUrl,
      'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path',
    ),
    /** Absent: the embedded PostgreSQL, with its data in `dataDir`. */
    databaseUrl: read('DATABASE_URL', (text) => parseConnectionUrl(text) && text, ''),
    dataDir: env.DATA_DIR ? resolve(env.DATA_DIR) : defaultDataDir,
    migrate: read('MIGRATE', choice({ on: true, off: false }), 'must be on or off') ?? true,
    rateLimit: read('RATE_LIMIT', parseRate, 'must be a whole number from 1 to 1000000'),
    checkoutTemplate: read(
      'CHECKOUT_URL',
      parseCheckoutTemplate,
      'must be an absolute http or https URL with {order_token} once in its path or query',
    ),
    securityContact: read(
      'SECURITY_CONTACT',
      (text) => (/^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text) ? text : undefined),
      'must be a URI such as mailto:security@example.com or https://example.com/security',
    ),
    /** Absent: see `findSecretsKeys`. */
    secretsKeys: read(
      'SECRETS_KEY',
      parseSecretsKeys,
      'must be 32 bytes in base64, or several such keys separated by commas',
    ),
    retentionDays: readNumber('RETENTION_DAYS', 1, 36_500, 'a whole number of days'),
    webhookAddresses,
    selfService: read('SELF_SERVICE', choice({ on: true, off: false }), 'must be on or off') ?? true,
    /** Absent: 0 on a terminal, otherwise the default of limits.ts. */
    drainDelayMs: readNumber('DRAIN_DELAY_MS', 0, 600_000),
    tls: readTlsFiles(env),
    /** Validated, but kept as text, which can be sent to a worker; {@link parseTrustProxy} returns a function. */
    trustProxy: read(
      'TRUST_PROXY',
      (text) => parseTrustProxy(text) && text,
      'must be a number of proxies from 1 to 9, or addresses and networks separated by commas',
    ),
    /** Calls are logged at level info, and those that fail with a 5xx status at level error. */
    logLevel: read('LOG_LEVEL', choice(logLevels), 'must be one of error, warn, info') ?? 'info',
    tracesSampler: hasCollector && tracesSampler,
  };
  if (config.tls === undefined && (env.TLS_CERT_FILE || env.TLS_KEY_FILE || env.TLS_CLIENT_CA_FILE))
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must be set together');
  const ports = [config.httpPort, config.grpcPort, config.adminPort].filter((port) => port !== 0);
  if (new Set(ports).size < ports.length)
    problems.push(`HTTP_PORT, GRPC_PORT and ADMIN_PORT must differ, not ${ports.join(', ')}`);
  if (config.retentionDays !== undefined && config.databaseUrl !== undefined && config.secretsKeys === undefined)
    problems.push(`RETENTION_DAYS ${config.retentionDays} needs SECRETS_KEY, which recognises erased orders`);
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  return config;
}

/** A secret from its variable, or from the file that its `_FILE` variable names, without surrounding white space. */
function readSecret(env: Readonly<Record<string, string | undefined>>, name: string): string | undefined {
  const fileName = `${name}_FILE`;
  const file = env[fileName];
  if (!file) return env[name];
  if (env[name]) throw new StartError(`${name} and ${fileName} are both set: set only one of them`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new StartError(
      `${fileName} must be a file that can be read, not ${shown(file)} (${(error as NodeJS.ErrnoException).code})`,
    );
  }
  if (text === '') throw new StartError(`${fileName} must be a file with a value, but ${shown(file)} is empty`);
  return text;
}

/** An invalid value in one line, without the user and password of a URL. */
function shown(text: string): string {
  const value = text.replace(/\/\/[^/]*@/, '//...@');
  return JSON.stringify(value.length > shownMax ? `${value.slice(0, shownMax)}...` : value);
}

/** Reads a whole number without a sign. */
function wholeNumber(min: number, max: number): (text: string) => number | undefined {
  return (text) => (/^\d{1,7}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined);
}

function choice<const Value>(values: Readonly<Record<string, Value>>): (text: string) => Value | undefined {
  return (text) => (Object.hasOwn(values, text) ? values[text] : undefined);
}

export const parseRate = wholeNumber(1, 1_000_000);

function parseShare(text: string): number | undefined {
  return /^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined;
}

function parseWorkers(text: string): number | undefined {
  return text === 'auto' ? Math.min(availableParallelism(), workersMax) : wholeNumber(1, workersMax)(text);
}

function readTlsFiles(env: Readonly<Record<string, string | undefined>>): TlsFiles | undefined {
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, TLS_CLIENT_CA_FILE: clientCaFile } = env;
  return certFile && keyFile ? { certFile, keyFile, clientCaFile: clientCaFile || undefined } : undefined;
}
