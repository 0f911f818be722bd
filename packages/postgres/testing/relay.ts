import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a database that changes what the server says. */
export interface Relay {
  /** The database's URL, by way of the relay. */
  readonly url: string;
  /** Pieces that the server has said so far. */
  passed(): number;
  /** Connections that there are. */
  open(): number;
  /** Ends the connections that there are, in words or by a reset. */
  hangUp(how: 'end' | 'reset'): void;
  close(): Promise<void>;
}

/** Passes on what the server says, in the pieces that `change` makes of each one, a turn of the event loop apart. */
export async function startRelay(databaseUrl: string, change: (piece: Buffer) => readonly Buffer[]): Promise<Relay> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let passed = 0;
  const server = createServer((client) => {
    client.setNoDelay(true);
    const database = connect(Number(target.port), target.hostname);
    let saying = Promise.resolve();
    const say = async (pieces: readonly Buffer[]) => {
      for (const piece of pieces) {
        client.write(piece);
        await new Promise(setImmediate);
      }
    };
    database.on('data', (piece: Buffer) => {
      saying = saying.then(() => say(change(piece)));
      passed += 1;
    });
    client.pipe(database);
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        void saying.then(() => other.destroy());
      });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  const hangUp = (how: 'end' | 'reset') => {
    for (const socket of sockets) {
      if (how === 'reset') socket.resetAndDestroy();
      else socket.destroy();
    }
  };
  return {
    url: url.href,
    passed: () => passed,
    open: () => sockets.size / 2,
    hangUp,
    async close() {
      server.close();
      hangUp('end');
      await once(server, 'close');
    },
  };
}
