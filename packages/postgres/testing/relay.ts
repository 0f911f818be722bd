import { startDatabaseProxy } from './database-proxy.ts';

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
  let passed = 0;
  const { url, sockets, close } = await startDatabaseProxy(databaseUrl, (client, database) => {
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
    return () => saying;
  });
  return {
    url,
    passed: () => passed,
    open: () => sockets.size / 2,
    hangUp(how) {
      for (const socket of sockets) {
        if (how === 'reset') socket.resetAndDestroy();
        else socket.destroy();
      }
    },
    close,
  };
}
