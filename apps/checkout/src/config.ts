import { serviceUsage } from '@order-gateway/command/service-usage';
import { parseBaseUrl, pathPrefixOf } from '@order-gateway/domain/links';
import { databaseVariables } from '@order-gateway/postgres/database-variables';
import { readCheckoutAccount } from '@order-gateway/runtime/checkout-account';
import { StartError } from '@order-gateway/runtime/process';
import { trustProxy } from '@order-gateway/runtime/remote-address';
import { secretsKeysVariable } from '@order-gateway/runtime/secrets-keys';
import { tracesSamplerOf, tracesVariables } from '@order-gateway/runtime/traces-sampler';
import {
  anyText,
  type Environment,
  host,
  logLevel,
  numberFrom,
  optional,
  port,
  readVariables,
  withDefault,
} from '@order-gateway/runtime/variables';

const url = {
  rule: 'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path',
  parse: parseBaseUrl,
};

/** The address of the checkout's own pages, which are at fixed paths. */
const origin = {
  rule: 'must be an absolute http or https URL without path, query or fragment',
  parse(text: string) {
    const parsed = parseBaseUrl(text);
    return parsed !== undefined && pathPrefixOf(parsed) === '' ? parsed : undefined;
  },
};

/** All variables, keyed by the names under which the code uses their values. */
const variables = {
  host,
  port: withDefault({
    name: 'CHECKOUT_PORT',
    help: 'the port of the pages; 0 selects a free one',
    defaultText: '8081',
    ...port,
  }),
  adminPort: optional({
    name: 'CHECKOUT_ADMIN_PORT',
    help: 'the port of /metrics for Prometheus; 0 selects a free one',
    defaultText: 'none',
    ...port,
  }),
  baseUrl: optional({
    name: 'CHECKOUT_BASE_URL',
    help: 'the public address',
    defaultText: 'http://localhost: and the port',
    ...origin,
  }),
  gatewayUrl: withDefault({
    name: 'BASE_URL',
    help: 'the public address of the gateway',
    defaultText: 'http://localhost:8080',
    ...url,
  }),
  gatewayGrpcUrl: withDefault({
    name: 'GATEWAY_GRPC_URL',
    help: "the gateway's gRPC port",
    defaultText: 'http://localhost:9090',
    ...url,
  }),
  clientId: optional({
    name: 'CHECKOUT_CLIENT_ID',
    help: "the checkout's account at the gateway",
    defaultText: 'created by start; required with DATABASE_URL',
    ...anyText,
  }),
  clientSecret: optional({
    name: 'CHECKOUT_CLIENT_SECRET',
    help: 'the secret of CHECKOUT_CLIENT_ID',
    defaultText: 'created by start; required with DATABASE_URL',
    ...anyText,
  }),
  ...databaseVariables({
    help: 'postgres://..., which may be the database of the gateway or another one',
    defaultText: "the gateway's embedded PostgreSQL",
  }),
  secretsKeys: secretsKeysVariable("the providers' keys"),
  retentionDays: optional({
    name: 'RETENTION_DAYS',
    help: 'erases digests of payers and requests to providers that are older, as the gateway erases orders',
    defaultText: 'never',
    ...numberFrom([1, 36_500], 'a whole number of days'),
  }),
  trustProxy,
  logLevel,
  ...tracesVariables,
};

/** The values of these variables are never shown. Each can also be read from a file. */
const secretNames = ['CHECKOUT_CLIENT_SECRET', 'DATABASE_URL', 'SECRETS_KEY'];

/** The text of `--help`. */
export const startUsage = serviceUsage({
  command: 'node apps/checkout/src/main.ts',
  name: 'checkout',
  variables,
  secretNames,
});

/** The configuration of a checkout. */
export type Config = ReturnType<typeof readConfig>;

/** Reads the configuration. Throws one error with all problems. */
export function readConfig(env: Environment) {
  const { values, problems } = readVariables(variables, secretNames, env);
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  return { ...values, tracesSampler: tracesSamplerOf(values) };
}

/** Returns the account at the gateway. Rejects if it is not configured, and `start` created none. */
export async function findCredentials({ clientId, clientSecret, databaseUrl, dataDir }: Config) {
  if (clientId && clientSecret) return { clientId, clientSecret };
  const created = databaseUrl === undefined ? await readCheckoutAccount(dataDir) : undefined;
  if (created === undefined)
    throw new StartError(
      'CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET are required. Create them with `checkout create`.',
    );
  return created;
}
