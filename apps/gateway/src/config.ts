import { availableParallelism } from 'node:os';
import { serviceUsage } from '@order-gateway/command/service-usage';
import { parseBaseUrl, parseCheckoutTemplate } from '@order-gateway/domain/links';
import { connectionUrl, databaseVariables } from '@order-gateway/postgres/database-variables';
import { type AllowedAddresses, isLoopbackUrl } from '@order-gateway/runtime/ip-address';
import { StartError } from '@order-gateway/runtime/process';
import { trustProxy } from '@order-gateway/runtime/remote-address';
import { secretsKeysVariable } from '@order-gateway/runtime/secrets-keys';
import { tracesSamplerOf, tracesVariables } from '@order-gateway/runtime/traces-sampler';
import {
  anyText,
  choice,
  type Environment,
  host,
  logLevel,
  numberFrom,
  onOrOff,
  optional,
  port,
  readVariables,
  wholeNumber,
  withDefault,
} from '@order-gateway/runtime/variables';
import { distance } from 'fastest-levenshtein';
import type { TlsFiles } from './runtime/network/tls.ts';

/** Each worker opens 19 database connections, so a larger number is almost certainly a mistake. */
const workersMax = 128;

/** The minimum and maximum number of calls per second. */
const rates = [1, 1_000_000] as const;

/** Parses a rate in calls per second. Returns `undefined` if the text is not a whole number in the allowed range. */
export const parseRate = wholeNumber(...rates);

/** All variables, keyed by the names under which the code uses their values. .env.example describes them. */
const variables = {
  host,
  httpPort: withDefault({
    name: 'HTTP_PORT',
    help: 'the port of the JSON API and the pages; 0 selects a free one',
    defaultText: '8080',
    ...port,
  }),
  grpcPort: withDefault({
    name: 'GRPC_PORT',
    help: 'the port of gRPC; 0 selects a free one',
    defaultText: '9090',
    ...port,
  }),
  adminPort: withDefault({
    name: 'ADMIN_PORT',
    help: 'the port of /metrics for Prometheus; 0 selects a free one',
    defaultText: '9464',
    ...port,
  }),
  workers: withDefault({
    name: 'WORKERS',
    help: 'the number of processes that share both ports, or auto for one per core',
    defaultText: '1',
    rule: `must be auto or a whole number from 1 to ${workersMax}`,
    parse: (text) =>
      text === 'auto' ? Math.min(availableParallelism(), workersMax) : wholeNumber(1, workersMax)(text),
  }),
  /**
   * Absent: `http://localhost:` (https with TLS), or HOST's address if `localhost` does not reach it, followed by the
   * port that was bound.
   */
  baseUrl: optional({
    name: 'BASE_URL',
    help: 'the public address of the gateway',
    defaultText: 'http://localhost: and the HTTP port',
    rule: 'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path',
    parse: parseBaseUrl,
  }),
  ...databaseVariables({ help: 'postgres://...', defaultText: 'an embedded PostgreSQL' }),
  checkoutTemplate: optional({
    name: 'CHECKOUT_URL',
    help: "the address of the payment page's Pay button, with {order_token}",
    defaultText: 'no button',
    rule: 'must be an absolute http or https URL with {order_token} once in its path or query',
    parse: parseCheckoutTemplate,
  }),
  checkoutMethod: withDefault({
    name: 'CHECKOUT_METHOD',
    help: 'post: the Pay button sends a form to CHECKOUT_URL, as apps/checkout needs it',
    defaultText: 'get',
    ...choice({ get: 'get', post: 'post' }),
  }),
  checkoutPort: withDefault({
    name: 'CHECKOUT_PORT',
    help: 'without DATABASE_URL and CHECKOUT_URL, the port of the checkout that starts too; 0 selects a free one; off: none',
    defaultText: '8081',
    rule: 'must be off or a port from 0 to 65535',
    parse: (text) => (text === 'off' ? ('off' as const) : port.parse(text)),
  }),
  securityContact: optional({
    name: 'SECURITY_CONTACT',
    help: 'the mailto: or https: URI in /.well-known/security.txt for reporting a vulnerability',
    defaultText: 'no such file',
    rule: 'must be a URI such as mailto:security@example.com or https://example.com/security',
    parse: (text) => (/^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text) ? text : undefined),
  }),
  rateLimit: optional({
    name: 'RATE_LIMIT',
    help: 'the calls per second that each merchant may make in one process',
    defaultText: 'no limit',
    ...numberFrom(rates),
  }),
  /** Absent: see `findSecretsKeys`. */
  secretsKeys: secretsKeysVariable('signing secrets'),
  retentionDays: optional({
    name: 'RETENTION_DAYS',
    help: "erases customers' data from older orders; requires SECRETS_KEY",
    defaultText: 'never',
    ...numberFrom([1, 36_500], 'a whole number of days'),
  }),
  /** Absent: depends on the database. */
  webhookAddresses: optional({
    name: 'WEBHOOK_ALLOW_PRIVATE',
    help: '1: also sends webhooks over http and to private addresses, for development',
    defaultText: '0; without DATABASE_URL only to this machine',
    ...choice<AllowedAddresses>({ 0: 'public', 1: 'any' }),
  }),
  selfService: withDefault({
    name: 'SELF_SERVICE',
    help: 'off: only operators manage webhook endpoints, client secrets and brands, not merchants over the API',
    defaultText: 'on',
    ...onOrOff,
  }),
  /** Absent: depends on the database. */
  console: optional({
    name: 'CONSOLE',
    help: "on: serves the merchants' console under /console",
    defaultText: 'off; without DATABASE_URL on',
    ...onOrOff,
  }),
  openIdIssuer: optional({
    name: 'OIDC_ISSUER',
    help: 'the OpenID Connect provider with which people sign in to the console; requires the next two',
    defaultText: 'none',
    rule: 'must be an https URL, or an http URL of this machine',
    parse: (text) => (isIssuer(URL.parse(text)) ? text : undefined),
  }),
  openIdClientId: optional({
    name: 'OIDC_CLIENT_ID',
    help: "the gateway's client id at the provider",
    defaultText: 'none',
    ...anyText,
  }),
  openIdClientSecret: optional({
    name: 'OIDC_CLIENT_SECRET',
    help: 'the secret of OIDC_CLIENT_ID',
    defaultText: 'none',
    ...anyText,
  }),
  operatorConsole: withDefault({
    name: 'OPERATOR_CONSOLE',
    help: "on: serves the operators' view on ADMIN_PORT; requires SECRETS_KEY",
    defaultText: 'off',
    ...onOrOff,
  }),
  /** Absent: the gateway's database URL. */
  operatorDatabaseUrl: optional({
    name: 'OPERATOR_DATABASE_URL',
    help: "the database URL of the operators' view, with a role such as order_gateway_reader",
    defaultText: 'no separate role',
    ...connectionUrl,
  }),
  /** Absent: 0 on a terminal, otherwise the default of limits.ts. */
  drainDelayMs: optional({
    name: 'DRAIN_DELAY_MS',
    help: 'how long a stopping gateway accepts requests while its health checks fail',
    defaultText: '5000; 0 on a terminal',
    ...numberFrom([0, 600_000]),
  }),
  tlsCertFile: optional({
    name: 'TLS_CERT_FILE',
    help: 'serves both ports over TLS with this certificate in PEM, read again when it changes',
    defaultText: 'no TLS',
    ...anyText,
  }),
  tlsKeyFile: optional({
    name: 'TLS_KEY_FILE',
    help: 'the private key of the certificate in PEM',
    defaultText: 'no TLS',
    ...anyText,
  }),
  tlsClientCaFile: optional({
    name: 'TLS_CLIENT_CA_FILE',
    help: 'gRPC clients need a certificate signed by this authority',
    defaultText: 'none',
    ...anyText,
  }),
  trustProxy,
  /** Calls are logged at level info, and those that fail with a 5xx status at level error. */
  logLevel,
  ...tracesVariables,
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
export const startUsage = serviceUsage({ command: 'start', name: 'gateway', variables, secretNames });

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
    tracesSampler: tracesSamplerOf({ hasCollector, samplerName, sampledShare }),
  };
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
