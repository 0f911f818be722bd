import { type Protocol as Door, protocols as doors } from '@gateway/fixtures/client';
import type { Phase } from './arrivals.ts';

/** The doors that a run can use: one, or all in turn. */
export const protocols = [...doors, 'mixed'] as const;

export type Protocol = (typeof protocols)[number];

/** `open`: calls come when they are due. `closed`: each caller sends its next call when the last is answered. */
export const modes = ['open', 'closed'] as const;

type Mode = (typeof modes)[number];

/** What a run may come to at most; a limit that is absent is not judged. */
export interface Thresholds {
  readonly p99_ms?: number;
  /** The part of the calls sent that was answered wrongly or not at all. */
  readonly error_rate?: number;
  /** The part of the calls due that could not be sent. */
  readonly dropped_rate?: number;
  /** Acknowledged orders that the audit finds lost, duplicated or changed, and lines of the journal that it cannot read. */
  readonly lost?: number;
}

/** Everything that decides what a run sends, and how it is judged. */
export interface LoadSettings {
  /** The profile's name, or `none`. */
  readonly profile: string;
  readonly mode: Mode;
  readonly protocol: Protocol;
  /** In closed mode their rates mean nothing and their lengths add up to the run's. */
  readonly phases: readonly Phase[];
  /** Connections to each door in use, for each process. In closed mode those of all processes, and the callers. */
  readonly connections: number;
  /** Calls without an answer at one time; a call that is due beyond it is dropped. */
  readonly underWayMax: number;
  readonly merchants: number;
  /** The part of the calls that repeats an earlier order, and the part that must be refused. */
  readonly replayShare: number;
  readonly invalidShare: number;
  readonly seed: number;
  /** Processes that send. */
  readonly workers: number;
  readonly thresholds: Thresholds;
}

/** Bounds of what makes sense: a day, a rate that no single machine sends, and sockets below its file descriptors. */
export const settingsMax = {
  ...{ seconds: 86_400, rate: 1_000_000, connections: 5_000, underWay: 100_000, merchants: 1_000, p99Ms: 600_000 },
} as const;

/** The doors that a protocol uses. */
export function doorsOf(protocol: Protocol): readonly [Door, ...Door[]] {
  return protocol === 'mixed' ? doors : [protocol];
}
