import type { List } from '../store/store.ts';
import { type AdvanceDeps, errorCode } from './advance.ts';
import { createPauses } from './pauses.ts';

/** How much of a list is read again, because providers add items late. */
const overlapMs = 3_600_000;

/** The pauses after errors double up to the time after which a list is read again anyway. */
const pauses = { msMin: 1_000, msMax: 60_000 };

/**
 * Returns the function that reads a list of each account whose list was not read for a minute, and uses the ids in it.
 * If that fails, the same part of the list is read again after a pause.
 */
export function createListReader(
  { store, providers, accountOf, logger }: Pick<AdvanceDeps, 'store' | 'providers' | 'accountOf' | 'logger'>,
  list: List,
  use: (connectionId: string, ids: readonly string[]) => Promise<unknown>,
): () => Promise<void> {
  const { paused, fail, succeed } = createPauses(pauses);
  const read = async ({ connectionId, provider, readUntil }: Awaited<ReturnType<typeof store.takeLists>>[number]) => {
    try {
      const idsSince = providers.get(provider)?.[list];
      if (idsSince === undefined) return;
      const ids = new Set<string>();
      const since = new Date(readUntil.getTime() - overlapMs);
      for await (const id of idsSince(await accountOf(connectionId), since)) ids.add(id);
      await use(connectionId, [...ids]);
      succeed(connectionId);
    } catch (error) {
      fail(connectionId);
      const fields = { connection_id: connectionId, list, error: errorCode(error) };
      logger.warn(fields, 'the list of a provider could not be read');
      await store.resetList(connectionId, list, readUntil);
    }
  };
  return async () => void (await Promise.all((await store.takeLists(list, [...paused()])).map(read)));
}
