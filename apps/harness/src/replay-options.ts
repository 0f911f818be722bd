import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Credentials, Merchants } from '@gateway/fixtures/fill-call';
import { fixturesFolder } from '@gateway/fixtures/load-fixtures';
import { givenAddresses } from './command-line.ts';
import type { GatewayAddresses } from './gateway-process.ts';

export interface ReplayOptions {
  /** A gateway that runs already, or `undefined` for one of our own. */
  readonly gateway: GivenGateway | undefined;
  readonly fixturesFolder: string;
  /** Only fixtures whose file or name holds this text. */
  readonly only: string;
  /** Recorded traffic to play in place of the fixtures. */
  readonly recording: RecordingOptions | undefined;
}

export interface RecordingOptions {
  readonly file: string;
  /** 2 plays it in half its own time. */
  readonly speed: number;
  /** Whether orders get ids that no earlier replay used; equal ones stay equal. */
  readonly freshOrderIds: boolean;
}

/** A gateway that runs already, with merchants that it knows. */
export interface GivenGateway extends GatewayAddresses {
  /** What its links begin with, where that is known. */
  readonly baseUrl?: string;
  readonly merchants: Merchants;
}

/** How to call it, for a caller who did not. */
export const replayUsage = `Replays the fixtures at every door of a gateway.

pnpm replay [--http URL --grpc HOST:PORT] [--fixtures DIR] [--only TEXT]
pnpm replay [--http URL --grpc HOST:PORT] [--speed X] [--fresh-order-ids] FILE.ndjson

With a FILE of recorded requests, one { "offset_ms", "headers", "body" } a line, these are sent to POST /order at X times their
own pace, with the credentials of one merchant in place of the recorded ones.

Without --http and --grpc a gateway is started for it, and stopped. With them, the credentials are read from CLIENT_ID and
CLIENT_SECRET. Some fixtures need a second merchant (SECOND_CLIENT_ID, SECOND_CLIENT_SECRET) or one whose checksums are
required (STRICT_CLIENT_ID, STRICT_CLIENT_SECRET); they are left out when it is not given.

Ends with 0 when all promises were kept, 1 when one was not or none was tried, 2 when nothing was sent as an argument or file is
at fault.
`;

/** Reads arguments and environment. Throws an Error with a sentence for the caller on what makes no sense. */
export function readReplayOptions(args: readonly string[], env: NodeJS.ProcessEnv): ReplayOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      speed: { type: 'string' },
      'fresh-order-ids': { type: 'boolean' },
      http: { type: 'string' },
      grpc: { type: 'string' },
      fixtures: { type: 'string' },
      only: { type: 'string' },
    },
  });
  if (positionals.length > 0 && (values.only ?? values.fixtures) !== undefined) {
    throw new Error('--only and --fixtures choose fixtures, and a FILE.ndjson is played in their place');
  }
  return {
    gateway: givenGateway(values.http, values.grpc, env),
    fixturesFolder: values.fixtures === undefined ? fixturesFolder : resolve(values.fixtures),
    only: values.only ?? '',
    recording: recordingOf(positionals, values.speed, values['fresh-order-ids'] === true),
  };
}

/** A thousandth keeps a typing error from lasting for years, a thousandfold is faster than any recording can be sent. */
const speedRange = { least: 0.001, most: 1_000 } as const;

function recordingOf(
  files: readonly string[],
  speedText: string | undefined,
  freshOrderIds: boolean,
): RecordingOptions | undefined {
  const [file, second] = files;
  if (second !== undefined) throw new Error('one recording at a time');
  if (file === undefined) {
    if (speedText !== undefined || freshOrderIds) throw new Error('--speed and --fresh-order-ids need a FILE.ndjson');
    return undefined;
  }
  const speed = Number(speedText ?? 1);
  if (!(speed >= speedRange.least && speed <= speedRange.most)) {
    throw new Error(`--speed must be a number from ${speedRange.least} to ${speedRange.most}`);
  }
  return { file, speed, freshOrderIds };
}

function givenGateway(
  http: string | undefined,
  grpc: string | undefined,
  env: NodeJS.ProcessEnv,
): GivenGateway | undefined {
  const addresses = givenAddresses(http, grpc);
  if (addresses === undefined) return undefined;
  const first = credentialsOf(env, '');
  if (first === undefined) throw new Error('set CLIENT_ID and CLIENT_SECRET to the credentials of a merchant');
  const second = credentialsOf(env, 'SECOND_');
  const strict = credentialsOf(env, 'STRICT_');
  const merchants = { first, ...(second && { second }), ...(strict && { strict }) };
  return { ...addresses, merchants };
}

function credentialsOf(env: NodeJS.ProcessEnv, prefix: string): Credentials | undefined {
  const clientId = env[`${prefix}CLIENT_ID`];
  const clientSecret = env[`${prefix}CLIENT_SECRET`];
  return clientId && clientSecret ? { clientId, clientSecret } : undefined;
}
