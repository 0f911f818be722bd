import type { Server, Socket } from 'node:net';
import { networkOf } from './ip-address.ts';

/** What a call knows of the connection that it came on. */
export interface Peer {
  /** The client's IP address; `undefined` once the connection is closed. */
  readonly address: string | undefined;
  /** The call has valid credentials: its connection is the last to make room. */
  known(): void;
  /** Nothing is done for the call now: until its response ends, its connection counts as idle. */
  waits(): void;
}

/** The peer of a call whose connection does not count. */
export const nobody: Peer = { address: undefined, known() {}, waits() {} };

/** Tracks the sockets of a server, also those without a TLS session yet. Returns what destroys all of them. */
export function trackSockets(server: Server): () => void {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

interface State {
  readonly network: string;
  isKnown: boolean;
  calls: number;
}

/**
 * Bounds the connections of a port. Those make room first that never had valid credentials; of these, those of the network that
 * has the most of them idle; of these, the one that is idle longest (decision 028). No event goes through all connections.
 */
export function createConnectionLimit<Connection>({
  connectionsMax,
  close,
}: {
  readonly connectionsMax: number;
  readonly close: (connection: Connection) => void;
}) {
  const states = new Map<Connection, State>();
  const idleStrangers = new IdleConnections<Connection>();
  const idleClients = new IdleConnections<Connection>();
  const idleLike = ({ isKnown }: State) => (isKnown ? idleClients : idleStrangers);

  return {
    /** Adds an idle connection. If the port is full, an idle one is closed for it; if none is idle, the new one is. */
    opened(connection: Connection, address: string | undefined) {
      if (states.size >= connectionsMax) {
        const idlest = idleStrangers.take() ?? idleClients.take();
        if (idlest === undefined) return close(connection);
        states.delete(idlest);
        close(idlest);
      }
      const state = { network: networkOf(address), isKnown: false, calls: 0 };
      states.set(connection, state);
      idleStrangers.add(connection, state.network);
    },
    closed(connection: Connection): void {
      const state = states.get(connection);
      states.delete(connection);
      if (state?.calls === 0) idleLike(state).delete(connection, state.network);
    },
    /** A complete request came. The connection is in use until the returned function is called; calling it again does nothing. */
    began(connection: Connection): () => void {
      const state = states.get(connection);
      if (state === undefined) return () => {};
      if (state.calls === 0) idleLike(state).delete(connection, state.network);
      state.calls += 1;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        state.calls -= 1;
        if (state.calls === 0 && states.has(connection)) idleLike(state).add(connection, state.network);
      };
    },
    isKnown: (connection: Connection) => states.get(connection)?.isKnown === true,
    /** The client has valid credentials. */
    known(connection: Connection): void {
      const state = states.get(connection);
      if (state === undefined || state.isKnown) return;
      if (state.calls === 0) idleStrangers.delete(connection, state.network);
      state.isKnown = true;
      if (state.calls === 0) idleClients.add(connection, state.network);
    },
  };
}

class IdleConnections<Connection> {
  readonly #byNetwork = new Map<string, Set<Connection>>();
  /** Networks by the number of their idle connections, the index; the last ones have the most. */
  readonly #bySize: Set<string>[] = [];
  #largest = 0;

  add(connection: Connection, network: string): void {
    const connections = this.#byNetwork.get(network) ?? new Set();
    this.#byNetwork.set(network, connections);
    connections.add(connection);
    this.#resized(network, connections.size - 1, connections.size);
  }

  delete(connection: Connection, network: string): void {
    const connections = this.#byNetwork.get(network);
    if (connections?.delete(connection)) this.#resized(network, connections.size + 1, connections.size);
  }

  /** Removes the connection that is idle longest of the network that has the most. */
  take(): Connection | undefined {
    const size = this.#largest;
    const network = takeFirst(this.#bySize[size]);
    if (network === undefined) return undefined;
    const connection = takeFirst(this.#byNetwork.get(network));
    this.#resized(network, size, size - 1);
    return connection;
  }

  #resized(network: string, before: number, after: number): void {
    this.#bySize[before]?.delete(network);
    if (after === 0) {
      this.#byNetwork.delete(network);
    } else {
      this.#bySize[after] ??= new Set();
      this.#bySize[after].add(network);
    }
    // A network grows or shrinks by one.
    if (after > this.#largest || (before === this.#largest && this.#bySize[before]?.size === 0)) this.#largest = after;
  }
}

/** Removes the item that was added first. At worst it skips as many gaps as the set had items: 8 µs among 10,000. */
function takeFirst<Item>(items: Set<Item> | undefined): Item | undefined {
  for (const item of items ?? []) {
    items?.delete(item);
    return item;
  }
  return undefined;
}
