import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson } from '@gateway/fixtures/json-number';
import { JsonShape } from '../json-shape.ts';
import { messageOf } from '../message-of.ts';
import type { Phase } from './arrivals.ts';
import { type LoadSettings, modes, protocols, settingsMax, type Thresholds } from './settings.ts';

/** The profiles of this room. */
export const profilesFolder = fileURLToPath(new URL('../../profiles', import.meta.url));

/** A file that cannot be run: its name, and why. */
export class ProfileFault extends Error {
  constructor(file: string, reason: string) {
    super(`${file}: ${reason}`);
  }
}

export type Profile = Omit<LoadSettings, 'seed' | 'workers'>;

/** The phases are kept as often as they are repeated. */
const repeatMax = 10_000;

const members = [
  ...['about', 'mode', 'protocol', 'phases', 'repeat', 'connections', 'under_way_max', 'merchants'],
  ...['replay_share', 'invalid_share', 'thresholds'],
];

/** What a profile says that leaves a member out. */
export const usual = { connections: 16, underWayMax: 1_000, merchants: 1, replayShare: 0, invalidShare: 0 } as const;

/**
 * Reads a profile: by the path of its file, or by the name of one of this room's. Rejects with a {@link ProfileFault} that names
 * the file and the reason.
 */
export async function loadProfile(nameOrFile: string): Promise<Profile> {
  const isName = /^[a-z0-9-]+$/.test(nameOrFile);
  const path = isName ? join(profilesFolder, `${nameOrFile}.json`) : nameOrFile;
  const file = basename(path);
  try {
    return parseProfile(file.replace(/\.json$/, ''), await readFile(path, 'utf8'));
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw new ProfileFault(file, missing ? 'there is no such file' : messageOf(error));
  }
}

/** Reads a profile's text. Throws an Error with a sentence for the first fault. */
export function parseProfile(name: string, text: string): Profile {
  const shape = new JsonShape('the profile', readJson(text), members);
  const replayShare = shape.numberIfAny('replay_share', 0, 1) ?? usual.replayShare;
  const invalidShare = shape.numberIfAny('invalid_share', 0, 1) ?? usual.invalidShare;
  if (replayShare + invalidShare > 1) throw shape.fault('replay_share', 'and invalid_share must not exceed 1 together');
  const connections = integer(shape, 'connections', settingsMax.connections) ?? usual.connections;
  return {
    profile: name,
    mode: chosen(shape, 'mode', modes) ?? 'open',
    protocol: chosen(shape, 'protocol', protocols) ?? 'json',
    phases: parsePhases(shape),
    connections,
    underWayMax: integer(shape, 'under_way_max', settingsMax.underWay) ?? usual.underWayMax,
    merchants: integer(shape, 'merchants', settingsMax.merchants) ?? usual.merchants,
    replayShare,
    invalidShare,
    thresholds: shape.has('thresholds') ? parseThresholds(shape.object('thresholds')) : {},
  };
}

function parsePhases(shape: JsonShape): Phase[] {
  const once = shape.list('phases').map((value, index): Phase => {
    const phase = new JsonShape(`phase ${index + 1}`, value, ['seconds', 'rate', 'to']);
    const seconds = phase.numberIfAny('seconds', 0.001, settingsMax.seconds);
    const rateFrom = phase.numberIfAny('rate', 0, settingsMax.rate);
    if (seconds === undefined) throw phase.fault('seconds', 'is missing');
    if (rateFrom === undefined) throw phase.fault('rate', 'is missing');
    return { seconds, rateFrom, rateTo: phase.numberIfAny('to', 0, settingsMax.rate) ?? rateFrom };
  });
  if (once.length === 0) throw shape.fault('phases', 'must hold a phase');
  const repeat = integer(shape, 'repeat', repeatMax) ?? 1;
  const seconds = repeat * once.reduce((sum, phase) => sum + phase.seconds, 0);
  if (seconds > settingsMax.seconds)
    throw shape.fault('phases', `must not last longer than ${settingsMax.seconds} s in all`);
  return Array.from({ length: repeat }, () => once).flat();
}

function parseThresholds(value: unknown): Thresholds {
  const shape = new JsonShape('thresholds', value, ['p99_ms', 'error_rate', 'dropped_rate', 'lost']);
  const limits: Thresholds = {
    ...limit(shape, 'p99_ms', settingsMax.p99Ms),
    ...limit(shape, 'error_rate', 1),
    ...limit(shape, 'dropped_rate', 1),
    ...limit(shape, 'lost', Number.MAX_SAFE_INTEGER),
  };
  return limits;
}

function limit(shape: JsonShape, name: keyof Thresholds, most: number): Thresholds {
  const number = shape.numberIfAny(name, 0, most);
  return number === undefined ? {} : { [name]: number };
}

function integer(shape: JsonShape, name: string, most: number): number | undefined {
  const number = shape.integerIfAny(name);
  if (number !== undefined && number > most) throw shape.fault(name, `must be at most ${most}`);
  return number;
}

function chosen<Choice extends string>(shape: JsonShape, name: string, choices: readonly Choice[]): Choice | undefined {
  const text = shape.textIfAny(name);
  const choice = choices.find((known) => known === text);
  if (text !== undefined && choice === undefined) throw shape.fault(name, `must be one of ${choices.join(', ')}`);
  return choice;
}
