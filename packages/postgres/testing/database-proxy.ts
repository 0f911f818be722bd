import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy between a database and its clients, for one test. */
export interface DatabaseProxy {
  /** The database's URL with the proxy's address. */
  readonly url: string;
  /** The open sockets of both sides. */
  readonly sockets: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/**
 * Accepts connections and opens one to the database for each. `join` forwards the bytes. If one side ends, the other
 * side is ended too.
 */
export async function startDatabaseProxy(
  databaseUrl: string,
  join: (client: Socket, database: Socket) => void = (client, database) => client.pipe(database).pipe(client),
  port = 0,
): Promise<DatabaseProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const database = connect(Number(target.port), target.hostname);
    join(client, database);
    for (const [socket, peer] of bothWays(client, database)) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        peer.destroySoon();
      });
    }
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    sockets,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

/**
 * Forwards everything until `hang` or `hangNew` is called. Then existing and new connections, or only new ones, stay
 * open, but carry no bytes.
 */
export async function startHangingProxy(databaseUrl: string) {
  let hangs = false;
  let opened = 0;
  const proxy = await startDatabaseProxy(databaseUrl, (client, database) => {
    opened += 1;
    if (!hangs) client.pipe(database).pipe(client);
  });
  const hangNew = () => {
    hangs = true;
  };
  return {
    ...proxy,
    /** The number of connections opened so far. */
    opened: () => opened,
    hangNew,
    hang() {
      hangNew();
      for (const socket of proxy.sockets) socket.unpipe().pause();
    },
    /** Forwards new connections again. */
    acceptAgain() {
      hangs = false;
    },
  };
}

/** Passes each chunk from the database through `change`, and drops it if the result is empty. */
export async function startChangingProxy(databaseUrl: string, change: (chunk: Buffer) => Uint8Array) {
  let received = 0;
  const proxy = await startDatabaseProxy(databaseUrl, (client, database) => {
    client.pipe(database);
    database.on('data', (chunk: Buffer) => {
      received += 1;
      client.write(change(chunk));
    });
  });
  return {
    ...proxy,
    /** The number of chunks that the database has sent. */
    received: () => received,
    /** Ends all connections, in an orderly way or by a reset. */
    disconnect(how: 'end' | 'reset') {
      for (const socket of proxy.sockets) {
        if (how === 'reset') socket.resetAndDestroy();
        else socket.destroy();
      }
    },
  };
}

/**
 * The first connection is cut at its first chunk, and each later one after one chunk more, up to this number. Then the
 * sequence repeats. A handshake has fewer chunks.
 */
const chunksMax = 12;

/** Cuts every connection at a different moment: while it connects, during a statement or between two statements. */
export async function startCuttingProxy(databaseUrl: string) {
  let connections = 0;
  let cuts = 0;
  let isCutting = true;
  const proxy = await startDatabaseProxy(databaseUrl, (client, database) => {
    let chunksLeft = connections % chunksMax;
    const byReset = connections % 2 === 0;
    connections += 1;
    for (const [from, to] of bothWays(client, database)) {
      from.on('data', (chunk) => {
        to.write(chunk);
        chunksLeft -= 1;
        if (!isCutting || chunksLeft >= 0) return;
        cuts += 1;
        if (byReset) client.resetAndDestroy();
        else client.destroy();
      });
    }
  });
  return {
    ...proxy,
    /** The number of connections cut so far. */
    cuts: () => cuts,
    stopCutting() {
      isCutting = false;
    },
  };
}

function bothWays(client: Socket, database: Socket) {
  return [
    [client, database],
    [database, client],
  ] as const;
}
