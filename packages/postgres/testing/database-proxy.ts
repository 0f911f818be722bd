import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Something between a database and its clients, for one test. */
export interface DatabaseProxy {
  /** The database's URL, by way of the proxy. */
  readonly url: string;
  /** Of both sides. */
  readonly sockets: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/**
 * Accepts connections and opens one to the database for each; `join` passes the bytes on and returns a function that waits until
 * all of them have passed. Then the end of one side ends the other.
 */
export async function startDatabaseProxy(
  databaseUrl: string,
  join: (client: Socket, database: Socket) => () => Promise<void>,
  port = 0,
): Promise<DatabaseProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const database = connect(Number(target.port), target.hostname);
    const passed = join(client, database);
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        void passed().then(() => other.destroy());
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
