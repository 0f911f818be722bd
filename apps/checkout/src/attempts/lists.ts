import type { List } from '../store/store.ts';
import { type AdvanceDeps, errorCode } from './advance.ts';

/** How much of a list is read again, because providers add items late. */
const overlapMs = 3_600_000;

/**
 * Reads a list of each account whose list was not read for a minute, and uses the ids in it. If that fails, the same
 * part of the list is read again.
 */
export async function readLists(
  { store, providers, accountOf, logger }: Pick<AdvanceDeps, 'store' | 'providers' | 'accountOf' | 'logger'>,
  list: List,
  use: (connectionId: string, ids: readonly string[]) => Promise<unknown>,
): Promise<void> {
  const read = async ({ connectionId, provider, readUntil }: Awaited<ReturnType<typeof store.takeLists>>[number]) => {
    try {
      const idsSince = providers.get(provider)?.[list];
      if (idsSince === undefined) return;
      const ids = new Set<string>();
      const since = new Date(readUntil.getTime() - overlapMs);
      for await (const id of idsSince(await accountOf(connectionId), since)) ids.add(id);
      await use(connectionId, [...ids]);
    } catch (error) {
      const fields = { connection_id: connectionId, list, error: errorCode(error) };
      logger.warn(fields, 'the list of a provider could not be read');
      await store.resetList(connectionId, list, readUntil);
    }
  };
  await Promise.all((await store.takeLists(list)).map(read));
}
