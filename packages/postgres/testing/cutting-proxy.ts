import { startDatabaseProxy } from './database-proxy.ts';

/** A proxy in front of a database, for one test. */
export interface CuttingProxy {
  /** The database's URL, by way of the proxy. */
  readonly url: string;
  /** Connections cut so far. */
  readonly cuts: () => number;
  /** From now on nothing is cut any more. */
  relent(): void;
  close(): Promise<void>;
}

/** In one connection after the other, pieces of data pass in either direction before it is cut: from the greeting to the first answers. */
const piecesMax = 12;

/** A way to a database that cuts every connection, each at another moment: in the greeting, under a statement, between two. */
export async function startCuttingProxy(databaseUrl: string): Promise<CuttingProxy> {
  let connections = 0;
  let cuts = 0;
  let cutting = true;
  const { url, close } = await startDatabaseProxy(databaseUrl, (client, database) => {
    let piecesLeft = connections % piecesMax;
    const byReset = connections % 2 === 0;
    connections += 1;
    const passed = () => {
      piecesLeft -= 1;
      if (!cutting || piecesLeft >= 0) return;
      cuts += 1;
      if (byReset) client.resetAndDestroy();
      else client.destroy();
    };
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      from.on('data', (piece) => {
        to.write(piece);
        passed();
      });
    }
    return async () => {};
  });
  return {
    url,
    cuts: () => cuts,
    relent() {
      cutting = false;
    },
    close,
  };
}
