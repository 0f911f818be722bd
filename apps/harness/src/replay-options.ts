import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Credentials, Merchants } from './fixtures/fill-call.ts';
import { fixturesFolder } from './fixtures/load-fixtures.ts';

export interface ReplayOptions {
  /** A gateway that runs already, or `undefined` for one of our own. */
  readonly gateway: GivenGateway | undefined;
  readonly fixturesFolder: string;
  /** Only fixtures whose file or name holds this text. */
  readonly only: string;
}

/** A gateway that runs already, with merchants that it knows. */
export interface GivenGateway {
  /** Without a trailing slash. */
  readonly httpUrl: string;
  /** `host:port`. */
  readonly grpcAddress: string;
  readonly merchants: Merchants;
}

/** How to call it, for a caller who did not. */
export const replayUsage = `Replays the fixtures at every door of a gateway.

pnpm replay [--http URL --grpc HOST:PORT] [--fixtures DIR] [--only TEXT]

Without --http and --grpc a gateway is started for it, and stopped. With them, the credentials are read from CLIENT_ID and
CLIENT_SECRET. Some fixtures need a second merchant (SECOND_CLIENT_ID, SECOND_CLIENT_SECRET) or one whose checksums are
required (STRICT_CLIENT_ID, STRICT_CLIENT_SECRET); they are left out when it is not given.
`;

/** Reads arguments and environment. Throws an Error with a sentence for the caller on what makes no sense. */
export function readReplayOptions(args: readonly string[], env: NodeJS.ProcessEnv): ReplayOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      http: { type: 'string' },
      grpc: { type: 'string' },
      fixtures: { type: 'string' },
      only: { type: 'string' },
    },
  });
  return {
    gateway: givenGateway(values.http, values.grpc, env),
    fixturesFolder: values.fixtures === undefined ? fixturesFolder : resolve(values.fixtures),
    only: values.only ?? '',
  };
}

function givenGateway(
  http: string | undefined,
  grpc: string | undefined,
  env: NodeJS.ProcessEnv,
): GivenGateway | undefined {
  if (http === undefined && grpc === undefined) return undefined;
  if (http === undefined || grpc === undefined) throw new Error('--http and --grpc must be given together');
  if (!/^https?:\/\/[^/]/.test(http) || !URL.canParse(http)) throw new Error('--http must be an http or https URL');
  if (!/^[^\s/]+:\d{1,5}$/.test(grpc)) throw new Error('--grpc must be HOST:PORT');
  const first = credentialsOf(env, '');
  if (first === undefined) throw new Error('set CLIENT_ID and CLIENT_SECRET to the credentials of a merchant');
  const second = credentialsOf(env, 'SECOND_');
  const strict = credentialsOf(env, 'STRICT_');
  const merchants = { first, ...(second && { second }), ...(strict && { strict }) };
  return { httpUrl: http.replace(/\/+$/, ''), grpcAddress: grpc, merchants };
}

function credentialsOf(env: NodeJS.ProcessEnv, prefix: string): Credentials | undefined {
  const clientId = env[`${prefix}CLIENT_ID`];
  const clientSecret = env[`${prefix}CLIENT_SECRET`];
  return clientId && clientSecret ? { clientId, clientSecret } : undefined;
}
