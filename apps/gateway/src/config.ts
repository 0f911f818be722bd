import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { nameAndMeaning } from '@order-gateway/command/columns';
import { defaultDataDir } from '@order-gateway/dev-postgres';
import { parseBaseUrl, parseCheckoutTemplate } from '@order-gateway/domain/links';
import { parseConnectionUrl } from '@order-gateway/postgres/connections';
import { StartError } from '@order-gateway/runtime/process';
import { parseSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import {
  anyText,
  choice,
  type Environment,
  numberFrom,
  onOrOff,
  optional,
  port,
  readVariables,
  wholeNumber,
  withDefault,
} from '@order-gateway/runtime/variables';
import { distance } from 'fastest-levenshtein';
import { type AllowedAddresses, isLoopbackUrl } from './runtime/network/ip-address.ts';
import { parseTrustProxy } from './runtime/network/remote-address.ts';
import type { TlsFiles } from './runtime/network/tls.ts';

/** The values of `OTEL_TRACES_SAMPLER` that the gateway supports. Their names are those of OpenTelemetry. */
const samplerNames = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** Each worker opens 18 database connections, so a larger number is almost certainly a mistake. */
const workersMax = 128;

/** The minimum and maximum number of calls per second. */
const rates = [1, 1_000_000] as const;

/** The rule and the parser of a database URL. The rule is empty, because the parser's own error contains it. */
const databaseUrl = ['', (text: string) => parseConnectionUrl(text) && text] as const;

/** All variables, keyed by the names under which the code uses their values. .env.example describes them. */
const variables = {
  host: withDefault('HOST', '127.0.0.1', 'the address to listen on', 'must be an address or a host name', (text) =>
    /\s/.test(text) ? undefined : text,
  ),
  httpPort: withDefault('HTTP_PORT', '8080', 'the port of the JSON API and the pages; 0 selects a free one', ...port),
  grpcPort: withDefault('GRPC_PORT', '9090', 'the port of gRPC; 0 selects a free one', ...port),
  adminPort: withDefault('ADMIN_PORT', '9464', 'the port of /metrics for Prometheus; 0 selects a free one', ...port),
  workers: withDefault(
    'WORKERS',
    '1',
    'the number of processes that share both ports, or auto for one per core',
    `must be auto or a whole number from 1 to ${workersMax}`,
    parseWorkers,
  ),
  /**
   * Absent: `http://localhost:` (https with TLS), or HOST's address if `localhost` does not reach it, followed by the
   * port that was bound.
   */
  baseUrl: optional(
    'BASE_URL',
    'http://localhost: and the HTTP port',
    'the public address of the gateway',
    'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path',
    parseBaseUrl,
  ),
  /** Absent: the embedded PostgreSQL, with its data in `dataDir`. */
  databaseUrl: optional('DATABASE_URL', 'an embedded PostgreSQL', 'postgres://...', ...databaseUrl),
  dataDir: {
    ...optional('DATA_DIR', '.data/', "the embedded PostgreSQL's data", 'must be a folder', (text) => resolve(text)),
    defaultValue: defaultDataDir,
  },
  migrate: withDefault('MIGRATE', 'on', 'off: never changes the schema, so run migrate first', ...onOrOff),
  checkoutTemplate: optional(
    'CHECKOUT_URL',
    'no button',
    "the address of the payment page's Pay button, with {order_token}",
    'must be an absolute http or https URL with {order_token} once in its path or query',
    parseCheckoutTemplate,
  ),
  checkoutMethod: withDefault(
    'CHECKOUT_METHOD',
    'get',
    'post: the Pay button sends a form to CHECKOUT_URL, as apps/checkout needs it',
    ...choice({ get: 'get', post: 'post' }),
  ),
  checkoutPort: withDefault(
    'CHECKOUT_PORT',
    '8081',
    'without DATABASE_URL and CHECKOUT_URL, the port of the checkout that starts too; 0 selects a free one; off: none',
    'must be off or a port from 0 to 65535',
    (text) => (text === 'off' ? ('off' as const) : port[1](text)),
  ),
  securityContact: optional(
    'SECURITY_CONTACT',
    'no such file',
    'the mailto: or https: URI in /.well-known/security.txt for reporting a vulnerability',
    'must be a URI such as mailto:security@example.com or https://example.com/security',
    (text) => (/^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text) ? text : undefined),
  ),
  rateLimit: optional(
    'RATE_LIMIT',
    'no limit',
    'the calls per second that each merchant may make in one process',
    ...numberFrom(rates),
  ),
  /** Absent: see `findSecretsKeys`. */
  secretsKeys: optional(
    'SECRETS_KEY',
    'a file in DATA_DIR; with DATABASE_URL none',
    'encrypts signing secrets: 32 bytes in base64, earlier keys after commas',
    'must be 32 bytes in base64, or several such keys separated by commas',
    parseSecretsKeys,
  ),
  retentionDays: optional(
    'RETENTION_DAYS',
    'never',
    "erases customers' data from older orders; requires SECRETS_KEY",
    ...numberFrom([1, 36_500], 'a whole number of days'),
  ),
  /** Absent: depends on the database. */
  webhookAddresses: optional(
    'WEBHOOK_ALLOW_PRIVATE',
    '0; without DATABASE_URL only to this machine',
    '1: also sends webhooks over http and to private addresses, for development',
    ...choice<AllowedAddresses>({ 0: 'public', 1: 'any' }),
  ),
  selfService: withDefault(
    'SELF_SERVICE',
    'on',
    'off: only operators manage webhook endpoints, client secrets and brands, not merchants over the API',
    ...onOrOff,
  ),
  /** Absent: depends on the database. */
  console: optional(
    'CONSOLE',
    'off; without DATABASE_URL on',
    "on: serves the merchants' console under /console",
    ...onOrOff,
  ),
  openIdIssuer: optional(
    'OIDC_ISSUER',
    'none',
    'the OpenID Connect provider with which people sign in to the console; requires the next two',
    'must be an https URL, or an http URL of this machine',
    (text) => (isIssuer(URL.parse(text)) ? text : undefined),
  ),
  openIdClientId: optional('OIDC_CLIENT_ID', 'none', "the gateway's client id at the provider", ...anyText),
  openIdClientSecret: optional('OIDC_CLIENT_SECRET', 'none', 'the secret of OIDC_CLIENT_ID', ...anyText),
  operatorConsole: withDefault(
    'OPERATOR_CONSOLE',
    'off',
    "on: serves the operators' view on ADMIN_PORT; requires SECRETS_KEY",
    ...onOrOff,
  ),
  /** Absent: the gateway's database URL. */
  operatorDatabaseUrl: optional(
    'OPERATOR_DATABASE_URL',
    'no separate role',
    "the database URL of the operators' view, with a role such as order_gateway_reader",
    ...databaseUrl,
  ),
  /** Absent: 0 on a terminal, otherwise the default of limits.ts. */
  drainDelayMs: optional(
    'DRAIN_DELAY_MS',
    '5000; 0 on a terminal',
    'how long a stopping gateway accepts requests while its health checks fail',
    ...numberFrom([0, 600_000]),
  ),
  tlsCertFile: optional(
    'TLS_CERT_FILE',
    'no TLS',
    'serves both ports over TLS with this certificate in PEM, read again when it changes',
    ...anyText,
  ),
  tlsKeyFile: optional('TLS_KEY_FILE', 'no TLS', 'the private key of the certificate in PEM', ...anyText),
  tlsClientCaFile: optional(
    'TLS_CLIENT_CA_FILE',
    'none',
    'gRPC clients need a certificate signed by this authority',
    ...anyText,
  ),
  /** Validated but kept as text: {@link parseTrustProxy} returns a function, which can't be sent to a worker. */
  trustProxy: optional(
    'TRUST_PROXY',
    'none',
    'the proxies whose X-Forwarded-For is used: addresses, networks, or the number of proxies',
    'must be a number of proxies from 1 to 9, or addresses and networks separated by commas',
    (text) => parseTrustProxy(text) && text,
  ),
  /** Calls are logged at level info, and those that fail with a 5xx status at level error. */
  logLevel: withDefault(
    'LOG_LEVEL',
    'info',
    'error, warn or info',
    ...choice({ error: 'error', warn: 'warn', info: 'info' }),
  ),
  // Only its presence matters: OpenTelemetry reads the collector's settings itself.
  hasCollector: optional(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'no traces',
    'sends traces to this OpenTelemetry collector, such as http://localhost:4318',
    'must be an http or https URL',
    (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? '') || undefined,
  ),
  samplerName: withDefault(
    'OTEL_TRACES_SAMPLER',
    'parentbased_traceidratio',
    'which calls are traced, as in OpenTelemetry',
    `must be one of ${samplerNames.join(', ')}`,
    (text) => samplerNames.find((name) => name === text),
  ),
  sampledShare: withDefault(
    'OTEL_TRACES_SAMPLER_ARG',
    '1',
    'the share of calls that are traced, 0 to 1',
    'must be a number from 0 to 1',
    (text) => (/^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined),
  ),
};

/**
 * The values of these variables are never shown. Each can also be read from the file named by the variable with the
 * suffix `_FILE`.
 */
const secretNames: readonly string[] = ['DATABASE_URL', 'OIDC_CLIENT_SECRET', 'OPERATOR_DATABASE_URL', 'SECRETS_KEY'];

const variableNames: readonly string[] = [
  ...Object.values(variables).map(({ name }) => name),
  ...secretNames.map((name) => `${name}_FILE`),
];

/** The text of `pnpm start --help`. */
export const startUsage = `Usage: start [options]

Starts the gateway, with the configuration in environment variables.

Options:
  -h, --help     show this help
  -V, --version  show the version

Variables:
${Object.values(variables)
  .map(({ name, help, defaultText }) => nameAndMeaning(name, `${help} (${defaultText})`, 26))
  .join('\n')}

DATABASE_URL_FILE, OIDC_CLIENT_SECRET_FILE, OPERATOR_DATABASE_URL_FILE and
SECRETS_KEY_FILE name files that hold these values.
Exit codes: 0 stopped; 1 the start failed, or a stop took too long; 2 an
argument is wrong.
`;

/** Names that other programs use for the same settings. */
const foreignNames: Readonly<Record<string, string>> = {
  PORT: 'HTTP_PORT',
  METRICS_PORT: 'ADMIN_PORT',
  PROMETHEUS_PORT: 'ADMIN_PORT',
  PUBLIC_URL: 'BASE_URL',
  POSTGRES_URL: 'DATABASE_URL',
  DB_URL: 'DATABASE_URL',
};

/** Two names are similar if they differ by at most one edit per this many letters. */
const lettersPerEdit = 5;

/**
 * Returns the variables that the gateway does not read but whose names resemble one that it reads, each with the name
 * that was probably meant.
 */
export function similarVariables(env: Environment) {
  return Object.keys(env).flatMap((variable) => {
    if (variableNames.includes(variable) || !env[variable]) return [];
    const isSimilar = (name: string) => distance(variable, name) <= name.length / lettersPerEdit;
    const meant = foreignNames[variable] ?? variableNames.find(isSimilar);
    return meant === undefined ? [] : [{ variable, meant }];
  });
}

/** The configuration that {@link readConfig} returns. {@link startUsage} explains its variables. */
export type Config = Readonly<ReturnType<typeof readConfig>>;

/**
 * Reads the configuration from environment variables and from the files of secrets. Throws one error with all problems,
 * one per line. Each line gives the variable, what is allowed, and the value unless it is a secret.
 */
export function readConfig(env: Environment) {
  const { values: read, problems } = readVariables(variables, secretNames, env);
  const {
    tlsCertFile,
    tlsKeyFile,
    tlsClientCaFile,
    hasCollector,
    samplerName,
    sampledShare,
    openIdIssuer,
    openIdClientId,
    openIdClientSecret,
    ...values
  } = read;
  const tls: TlsFiles | undefined =
    tlsCertFile && tlsKeyFile
      ? { certFile: tlsCertFile, keyFile: tlsKeyFile, clientCaFile: tlsClientCaFile }
      : undefined;
  const openId =
    openIdIssuer && openIdClientId && openIdClientSecret
      ? { issuer: openIdIssuer, clientId: openIdClientId, clientSecret: openIdClientSecret }
      : undefined;
  problems.push(
    ...missingBeside(read, ['tlsCertFile', 'tlsKeyFile', 'tlsClientCaFile'], ['tlsCertFile', 'tlsKeyFile']),
    ...missingBeside(read, openIdKeys, openIdKeys),
  );
  const ports = [values.httpPort, values.grpcPort, values.adminPort].filter((port) => port !== 0);
  if (new Set(ports).size < ports.length)
    problems.push(`HTTP_PORT, GRPC_PORT and ADMIN_PORT must differ, not ${ports.join(', ')}`);
  if (values.retentionDays !== undefined && values.databaseUrl !== undefined && values.secretsKeys === undefined)
    problems.push(`RETENTION_DAYS ${values.retentionDays} needs SECRETS_KEY, which recognizes erased orders`);
  if (values.operatorConsole && values.databaseUrl !== undefined && values.secretsKeys === undefined)
    problems.push('OPERATOR_CONSOLE on needs SECRETS_KEY, which signs the sign-in links');
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  const isEmbedded = !(env.DATABASE_URL || env.DATABASE_URL_FILE);
  return {
    ...values,
    webhookAddresses: values.webhookAddresses ?? (isEmbedded ? 'loopback' : 'public'),
    console: values.console ?? isEmbedded,
    tls,
    openId,
    tracesSampler: hasCollector && { name: samplerName, share: sampledShare },
  };
}

/** Parses a rate in calls per second. Returns `undefined` if the text is not a whole number in the allowed range. */
export function parseRate(text: string): number | undefined {
  return wholeNumber(...rates)(text);
}

const openIdKeys = ['openIdIssuer', 'openIdClientId', 'openIdClientSecret'] as const;

/** Returns the problem that some variables of a group are set without those that the group needs. */
function missingBeside(
  read: Readonly<Record<string, unknown>>,
  group: readonly (keyof typeof variables)[],
  needed: readonly (keyof typeof variables)[],
): string[] {
  const [set, missing] = [group.filter((key) => read[key]), needed.filter((key) => !read[key])];
  if (set.length === 0 || missing.length === 0) return [];
  const names = (keys: typeof group) => keys.map((key) => variables[key].name).join(' and ');
  return [`${names(set)} ${set.length === 1 ? 'needs' : 'need'} ${names(missing)}`];
}

function isIssuer(url: URL | null): boolean {
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackUrl(url));
}

function parseWorkers(text: string): number | undefined {
  return text === 'auto' ? Math.min(availableParallelism(), workersMax) : wholeNumber(1, workersMax)(text);
}
