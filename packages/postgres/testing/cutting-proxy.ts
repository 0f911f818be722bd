import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

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
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let connections = 0;
  let cuts = 0;
  let cutting = true;
  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname);
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
      sockets.add(from);
      from.on('error', () => {});
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on('data', (piece) => {
        to.write(piece);
        passed();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cuts: () => cuts,
    relent() {
      cutting = false;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
