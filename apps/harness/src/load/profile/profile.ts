import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nameAndMeaning } from '@order-gateway/command/columns';
import { protocols } from '@order-gateway/fixtures';
import { z } from 'zod';
import { messageOf } from '../../command/command.ts';

const profilesFolder = fileURLToPath(new URL('../../../profiles', import.meta.url));

/** The protocols that a run can use. `mixed` chooses a protocol at random for each call. */
export const protocolChoices = [...protocols, 'mixed'] as const;

/**
 * `open`: calls follow a schedule. `closed`: each client sends its next call after the response to its previous one.
 */
export const modes = ['open', 'closed'] as const;

/** A day. A longer run is almost certainly a typing error. */
const secondsMax = 86_400;

/** The kinds of call besides a new order: the name of each, the setting of its share, and what such calls do. */
export const shares = [
  ['invalid', 'invalid_share', 'must fail'],
  ['replay', 'replay_share', 'repeat an earlier order'],
  ['get', 'get_share', 'look up an earlier order'],
  ['pay', 'pay_share', 'pay an earlier order'],
  ['cancel', 'cancel_share', 'cancel an earlier order'],
  ['list', 'list_share', 'list orders'],
  ['start', 'start_share', 'start a payment of an earlier order'],
  ['end', 'end_share', 'end a payment attempt'],
  ['refund', 'refund_share', 'refund an earlier order'],
  ['report', 'report_share', 'report a refund or dispute of an earlier order'],
  ['fail', 'fail_share', 'end a pending refund of an earlier order as an operator does'],
] as const;

const share = z.number().min(0).max(1);
const shareSettings = Object.fromEntries(shares.map(([, name]) => [name, share.default(0)])) as Record<
  (typeof shares)[number][1],
  z.ZodDefault<z.ZodNumber>
>;
const rate = z.number().min(0).max(1_000_000);

const phaseSchema = z
  .strictObject({ seconds: z.number().positive().max(secondsMax), rate, to: rate.optional() })
  .transform(({ seconds, rate, to = rate }) => ({ seconds, rate, to }));

/** A profile: the load of a run and its thresholds. An absent threshold is not checked. */
const profileSchema = z
  .strictObject({
    about: z.string().default(''),
    mode: z.enum(modes).default('open'),
    protocol: z.enum(protocolChoices).default('json'),
    phases: z.array(phaseSchema).min(1),
    repeat: z.int().min(1).max(10_000).default(1),
    /** For each protocol in use; in closed mode also the number of clients. */
    connections: z.int().min(1).max(5_000).default(16),
    /** The maximum number of calls without a response; further calls are dropped. */
    max_pending: z.int().min(1).max(100_000).default(1_000),
    merchants: z.int().min(1).max(1_000).default(1),
    ...shareSettings,
    /** The share of orders that have metadata, and of lists that are filtered by metadata. */
    metadata_share: share.default(0),
    thresholds: z
      .strictObject({ p99_ms: z.number().min(0), error_rate: share, dropped_rate: share, lost: z.int().min(0) })
      .partial()
      .default({}),
  })
  .refine((profile) => shares.reduce((sum, [, name]) => sum + profile[name], 0) <= 1, 'the shares exceed 1')
  .transform(({ repeat, phases, ...rest }) => ({
    ...rest,
    phases: Array.from({ length: repeat }, () => phases).flat(),
  }))
  .refine(({ phases }) => arrivalsOf(phases).seconds <= secondsMax, {
    message: `must not last longer than ${secondsMax} s`,
    path: ['phases'],
  })
  .refine(({ mode, phases }) => mode === 'closed' || phases.some(({ rate, to }) => rate + to > 0), {
    message: 'must send something',
    path: ['phases'],
  });

export type Profile = z.infer<typeof profileSchema>;

/** A profile with its name, and the seed of the run. */
export interface LoadSettings extends Profile {
  /** The profile's name, or `none`. */
  readonly profile: string;
  readonly seed: number;
}

export type Thresholds = LoadSettings['thresholds'];

function profileNames(): string[] {
  return readdirSync(profilesFolder).map((file) => basename(file, '.json'));
}

/** Returns the part of the help that lists the available profiles with their purposes. */
export function listProfiles(): string {
  return profileNames()
    .map((name) => nameAndMeaning(name, loadProfile(name).about, 13))
    .join('\n');
}

/**
 * Reads a profile by its name or the path of its file. Throws an Error that names the file and every invalid member.
 */
export function loadProfile(nameOrFile: string): Profile {
  const isName = /^[a-z0-9-]+$/.test(nameOrFile);
  if (isName && !profileNames().includes(nameOrFile))
    throw new Error(
      `There is no profile ${nameOrFile}. The profiles are ${profileNames().join(', ')}. You can also give the path of a JSON file.`,
    );
  const path = isName ? join(profilesFolder, `${nameOrFile}.json`) : nameOrFile;
  try {
    return parseProfile(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new Error(`${basename(path)}: ${messageOf(error)}`);
  }
}

/** Checks a profile. Throws an Error that names every invalid member. */
export function parseProfile(value: unknown): Profile {
  const result = profileSchema.safeParse(value);
  if (!result.success) throw new Error(z.prettifyError(result.error));
  return result.data;
}

/** A part of a run in which the rate of calls changes linearly from `rate` to `to`, in calls per second. */
export interface Phase {
  readonly seconds: number;
  readonly rate: number;
  readonly to: number;
}

/** The time at which each call is scheduled, fixed before the run begins and independent of the gateway. */
export type Arrivals = ReturnType<typeof arrivalsOf>;

/** Rounding errors raise the sum of the phases by less than this. Such an error must not add a call. */
const roundingMax = 1e-6;

/** Returns the schedule of consecutive phases. */
export function arrivalsOf(phases: readonly Phase[]) {
  const starts: { phase: Phase; seconds: number; calls: number }[] = [];
  let seconds = 0;
  let calls = 0;
  for (const phase of phases) {
    starts.push({ phase, seconds, calls });
    seconds += phase.seconds;
    calls += (phase.seconds * (phase.rate + phase.to)) / 2;
  }
  // Numbers usually ascend, so the search begins at the phase of the previous call.
  let current = 0;
  return {
    /** The number of calls. */
    count: Math.max(0, Math.ceil(calls - roundingMax)),
    seconds,
    /**
     * Returns the milliseconds from the run's start until call `number`, counted from 0, is scheduled. Never decreases
     * from one call to the next.
     */
    scheduledMs(number: number): number {
      if ((starts[current]?.calls ?? 0) > number) current = 0;
      while ((starts[current + 1]?.calls ?? Number.POSITIVE_INFINITY) <= number) current += 1;
      const start = starts[current];
      return start === undefined ? 0 : (start.seconds + secondsUntil(start.phase, number - start.calls)) * 1_000;
    },
  };
}

export function constantRate(rate: number, seconds: number): Phase[] {
  return [{ seconds, rate, to: rate }];
}

/**
 * Returns the seconds of a phase after which `calls` have arrived: the root of calls = rate * t + slope / 2 * t², in
 * the form that neither divides by a slope of zero nor loses digits if the slope is small.
 */
function secondsUntil({ seconds, rate, to }: Phase, calls: number): number {
  if (calls <= 0) return 0;
  const slope = (to - rate) / seconds;
  const root = Math.sqrt(Math.max(0, rate * rate + 2 * slope * calls));
  return Math.min(seconds, (2 * calls) / (rate + root));
}
