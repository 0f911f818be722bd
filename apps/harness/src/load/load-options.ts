import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { givenAddresses } from '../command-line.ts';
import type { GatewayAddresses } from '../gateway-process.ts';
import { arrivalsOf, bursts, constantRate, type Phase } from './arrivals.ts';
import { loadProfile, type Profile, usual } from './profile.ts';
import { type LoadSettings, modes, protocols, settingsMax, type Thresholds } from './settings.ts';

export interface LoadOptions {
  readonly settings: LoadSettings;
  /** A gateway that runs already, or `undefined` for one of our own. */
  readonly gateway: GatewayAddresses | undefined;
  /** A file of credentials, one JSON object a line as `pnpm merchant create --json` prints them. */
  readonly credentialsFile: string | undefined;
  /** Whether the run is held against the database. */
  readonly audit: boolean;
  readonly journalFile: string | undefined;
  readonly jsonFile: string | undefined;
  readonly htmlFile: string | undefined;
}

/** Calls a second that one sending process is trusted with: at any door it was seen to send more (docs/load-testing.md). */
const ratePerWorker = 3_000;

/** How to call it, for a caller who did not. */
export const loadUsage = `Sends orders to a gateway at a given rate, and tells how fast and how well they were answered.

pnpm load [--profile NAME|FILE] [--mode open|closed] [--protocol ${protocols.join('|')}]
          [--rate N] [--duration 30s] [--ramp-to N] [--burst RATE:LENGTH:EVERY] [--connections N] [--under-way-max N]
          [--merchants N] [--replay-share 0..1] [--invalid-share 0..1] [--seed N] [--workers N]
          [--p99-ms N] [--error-rate 0..1] [--dropped-rate 0..1] [--audit] [--journal FILE] [--json FILE] [--html FILE]
          [--http URL --grpc HOST:PORT [--credentials FILE]]

Without --http and --grpc a gateway is started for it, and stopped. With them, the credentials are read from CLIENT_ID and
CLIENT_SECRET, or from a file with one line a merchant as \`pnpm merchant create --json\` prints it. What is given here goes
before what the profile says. Ends with 0 when all thresholds held, 1 when one did not or a sending process died, 2 when nothing
was sent as an argument or file is at fault, 130 when it was interrupted.
`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

const options = {
  ...{ profile: text, mode: text, protocol: text, rate: text, duration: text, 'ramp-to': text, burst: text },
  ...{ connections: text, 'under-way-max': text, merchants: text, 'replay-share': text, 'invalid-share': text },
  ...{ seed: text, workers: text, 'p99-ms': text, 'error-rate': text, 'dropped-rate': text },
  ...{ audit: flag, journal: text, json: text, html: text, http: text, grpc: text, credentials: text },
} as const;

type Values = { readonly [Name in Exclude<keyof typeof options, 'audit'>]?: string | undefined };

const plain: Profile = {
  ...usual,
  ...{ profile: 'none', mode: 'open', protocol: 'json', phases: constantRate(100, 10), thresholds: {} },
};

/** Reads arguments. Rejects with an Error with a sentence for the caller on what makes no sense. */
export async function readLoadOptions(args: readonly string[]): Promise<LoadOptions> {
  const { values } = parseArgs({ args: [...args], options });
  const base = values.profile === undefined ? plain : await loadProfile(values.profile);
  const profile: Profile = {
    profile: base.profile,
    mode: chosen('mode', values.mode, modes) ?? base.mode,
    protocol: chosen('protocol', values.protocol, protocols) ?? base.protocol,
    phases: phasesOf(values, base),
    connections: whole(values, 'connections', 1, settingsMax.connections) ?? base.connections,
    underWayMax: whole(values, 'under-way-max', 1, settingsMax.underWay) ?? base.underWayMax,
    merchants: whole(values, 'merchants', 1, settingsMax.merchants) ?? base.merchants,
    replayShare: number(values, 'replay-share', 0, 1) ?? base.replayShare,
    invalidShare: number(values, 'invalid-share', 0, 1) ?? base.invalidShare,
    thresholds: thresholdsOf(values, base.thresholds),
  };
  if (profile.replayShare + profile.invalidShare > 1) {
    throw new Error('--replay-share and --invalid-share must not exceed 1 together');
  }
  const gateway = givenAddresses(values.http, values.grpc);
  if (gateway === undefined && values.credentials !== undefined) {
    throw new Error('--credentials needs --http and --grpc: a gateway of its own gets merchants of its own');
  }
  const audit = values.audit === true || profile.thresholds.lost !== undefined;
  return {
    settings: {
      ...profile,
      // An audit without a limit of its own still allows nothing to be lost.
      thresholds: audit ? { lost: 0, ...profile.thresholds } : profile.thresholds,
      seed: whole(values, 'seed', 0, 2 ** 32 - 1) ?? randomInt(2 ** 32),
      workers: whole(values, 'workers', 1, 64) ?? workersFor(profile),
    },
    gateway,
    credentialsFile: values.credentials,
    audit,
    journalFile: values.journal,
    jsonFile: values.json,
    htmlFile: values.html,
  };
}

/** More than one process where one is not trusted with the rate, and never more than there are processors. */
function workersFor({ mode, phases }: Profile): number {
  if (mode === 'closed') return 1;
  return Math.min(availableParallelism(), Math.max(1, Math.ceil(arrivalsOf(phases).peakRate / ratePerWorker)));
}

function phasesOf(values: Values, { mode, phases: base }: Profile): readonly Phase[] {
  if ([values.rate, values.duration, values['ramp-to'], values.burst].every((value) => value === undefined))
    return base;
  const closed = (values.mode ?? mode) === 'closed';
  const rate = number(values, 'rate', 0, settingsMax.rate) ?? (closed ? 0 : onlyRateOf(base));
  const seconds = secondsOf('--duration', values.duration) ?? base.reduce((sum, phase) => sum + phase.seconds, 0);
  const rampTo = number(values, 'ramp-to', 0, settingsMax.rate);
  if (rampTo !== undefined && values.burst !== undefined) throw new Error('--ramp-to and --burst exclude each other');
  if (rampTo !== undefined) return [{ seconds, rateFrom: rate, rateTo: rampTo }];
  if (values.burst === undefined) return constantRate(rate, seconds);
  const [high, length, every, ...rest] = values.burst.split(':');
  const burstRate = Number(high);
  const burstSeconds = secondsOf('the length of --burst', length);
  const everySeconds = secondsOf('the period of --burst', every);
  const complete = burstSeconds !== undefined && everySeconds !== undefined && rest.length === 0;
  if (!complete || !(burstRate > 0 && burstRate <= settingsMax.rate) || burstSeconds > everySeconds) {
    throw new Error('--burst must be RATE:LENGTH:EVERY, such as 2000:2s:10s');
  }
  return bursts({ rate, seconds, burstRate, burstSeconds, everySeconds });
}

/** A profile with phases of its own would be taken for the rate of its first moment. */
function onlyRateOf(phases: readonly Phase[]): number {
  const [rate = 0, ...others] = new Set(phases.flatMap(({ rateFrom, rateTo }) => [rateFrom, rateTo]));
  if (others.length > 0) throw new Error('--rate must be given too, as the profile has more than one');
  return rate;
}

function thresholdsOf(values: Values, base: Thresholds): Thresholds {
  const p99 = number(values, 'p99-ms', 0, settingsMax.p99Ms);
  const errors = number(values, 'error-rate', 0, 1);
  const dropped = number(values, 'dropped-rate', 0, 1);
  return {
    ...base,
    ...(p99 === undefined ? {} : { p99_ms: p99 }),
    ...(errors === undefined ? {} : { error_rate: errors }),
    ...(dropped === undefined ? {} : { dropped_rate: dropped }),
  };
}

/** `90`, `90s`, `2m` or `1h`, up to a day. */
function secondsOf(what: string, written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(s|m|h)?$/.exec(written) ?? [];
  const seconds = Number(amount) * ({ s: 1, m: 60, h: 3_600 }[unit] ?? 1);
  if (!(seconds > 0 && seconds <= settingsMax.seconds))
    throw new Error(`${what} must be a time up to a day, such as 30s or 2m`);
  return seconds;
}

function number(values: Values, name: keyof Values, least: number, most: number): number | undefined {
  const written = values[name];
  if (written === undefined) return undefined;
  const value = /^\d+(\.\d+)?$/.test(written) ? Number(written) : Number.NaN;
  if (!(value >= least && value <= most)) throw new Error(`--${name} must be a number from ${least} to ${most}`);
  return value;
}

function whole(values: Values, name: keyof Values, least: number, most: number): number | undefined {
  const value = number(values, name, least, most);
  if (value !== undefined && !Number.isInteger(value)) throw new Error(`--${name} must be a whole number`);
  return value;
}

function chosen<Choice extends string>(
  name: string,
  written: string | undefined,
  choices: readonly Choice[],
): Choice | undefined {
  const choice = choices.find((known) => known === written);
  if (written !== undefined && choice === undefined) throw new Error(`--${name} must be one of ${choices.join(', ')}`);
  return choice;
}
