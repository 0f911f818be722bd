import type { Credentials } from '@gateway/fixtures/fill-call';
import type { SecondPart } from './recorder.ts';
import type { LoadSettings } from './settings.ts';

/** What a sending process is told at its start. */
export interface WorkerTask {
  readonly kind: 'task';
  readonly settings: LoadSettings;
  readonly httpUrl: string;
  readonly grpcAddress: string;
  readonly credentials: readonly Credentials[];
  /** A journal that was started already. */
  readonly journalFile: string | undefined;
  /** This worker's place among `settings.workers`, from 0. */
  readonly place: number;
}

/** What a sending process is told. `begin` names the moment, on the clock of `Date.now()`. */
export type ToWorker = WorkerTask | { readonly kind: 'begin'; readonly startAtMs: number } | { readonly kind: 'stop' };

/** What it tells. `ready` asks for `begin`; after `ended` nothing comes. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'second'; readonly part: SecondPart }
  | { readonly kind: 'ended' }
  | { readonly kind: 'failed'; readonly reason: string };
