import { setTimeout as sleep } from 'node:timers/promises';
import type { Credentials } from '@order-gateway/domain/accounts';

const pollMs = 200;

/** What a follower has read. */
export interface FollowedFeed {
  readonly httpUrl: string;
  readonly credentials: Credentials;
  /** The ids of the events, in the order in which they were read. */
  readonly eventIds: string[];
  /** The status of each response that was not a success. */
  readonly failures: number[];
  /** Resolves when the follower has read to the end after the signal aborted. */
  readonly done: Promise<void>;
}

/**
 * Reads the feed of a merchant with cursors until the signal aborts, and then to its end. Failed reads are repeated.
 */
export function followFeed(httpUrl: string, credentials: Credentials, signal: AbortSignal): FollowedFeed {
  const eventIds: string[] = [];
  const failures: number[] = [];
  const follow = async () => {
    let cursor: string | undefined;
    for (;;) {
      const isLast = signal.aborted;
      const query = cursor === undefined ? '' : `&cursor=${cursor}`;
      const headers = { 'x-client-id': credentials.clientId, 'x-client-secret': credentials.clientSecret };
      const response = await fetch(`${httpUrl}/events?limit=100${query}`, { headers });
      const page = Object(await response.json());
      if (!response.ok) failures.push(response.status);
      const ids = response.ok ? page.events.map(({ id }: { id: string }) => id) : [];
      eventIds.push(...ids);
      cursor = page.next_cursor ?? cursor;
      if (response.ok && isLast && ids.length === 0) return;
      if (ids.length === 0) await sleep(pollMs);
    }
  };
  const done = follow();
  // A test that awaits `done` gets the error. A test that has failed no longer awaits `done`.
  done.catch(() => {});
  return { httpUrl, credentials, eventIds, failures, done };
}
