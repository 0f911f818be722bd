import type { Server, Socket } from 'node:net';

/** The connection as a call sees it. */
export interface Peer {
  /** The client's IP address; `undefined` once the connection is closed. */
  readonly address: string | undefined;
  /** Records that the call has valid credentials, so that its connection is among the last to be replaced. */
  markAuthenticated(): void;
  /** Records that the gateway does no more work for the call, so that its connection counts as idle from now on. */
  markIdle(): void;
}

/** The peer of a call whose connection is not limited. */
export const noPeer: Peer = { address: undefined, markAuthenticated() {}, markIdle() {} };

/**
 * Tracks the sockets of a server, including those still without a TLS session. Returns a function that destroys them.
 */
export function trackSockets(server: Server): () => void {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  server.on('connection', track);
  server.on('secureConnection', track);
  return () => {
    // Destroys the newest first, because a TLS socket must not write to a destroyed socket below it
    // (docs/decisions/070-secure-the-drivers-sockets.md).
    for (const socket of [...sockets].reverse()) socket.destroy();
  };
}

interface State {
  isAuthenticated: boolean;
  calls: number;
}

/**
 * Bounds the connections of a port. When the port is full, a new connection replaces the least recently used idle
 * connection that is unauthenticated. If there is none, it replaces the least recently used idle connection that is
 * authenticated (docs/decisions/047-unauthenticated-callers.md).
 */
export function createConnectionLimit<Connection>(connectionsMax: number, close: (connection: Connection) => void) {
  const states = new Map<Connection, State>();
  /** The idle connections, least recently used first. */
  const idle = { unauthenticated: new Set<Connection>(), authenticated: new Set<Connection>() };
  const idleSetOf = ({ isAuthenticated }: State) => (isAuthenticated ? idle.authenticated : idle.unauthenticated);

  return {
    /** Adds an idle connection. If the port is full and no other connection is idle, closes the new one. */
    opened(connection: Connection) {
      if (states.size >= connectionsMax) {
        const leastRecentlyUsed = takeFirst(idle.unauthenticated) ?? takeFirst(idle.authenticated);
        if (leastRecentlyUsed === undefined) return close(connection);
        states.delete(leastRecentlyUsed);
        close(leastRecentlyUsed);
      }
      states.set(connection, { isAuthenticated: false, calls: 0 });
      idle.unauthenticated.add(connection);
    },
    closed(connection: Connection): void {
      const state = states.get(connection);
      states.delete(connection);
      if (state !== undefined) idleSetOf(state).delete(connection);
    },
    /**
     * Marks a connection as in use. Called when a complete request has been received. Returns the function that ends
     * this use; calling the function again does nothing.
     */
    use(connection: Connection): () => void {
      const state = states.get(connection);
      if (state === undefined) return () => {};
      idleSetOf(state).delete(connection);
      state.calls += 1;
      let hasEnded = false;
      return () => {
        if (hasEnded) return;
        hasEnded = true;
        state.calls -= 1;
        if (state.calls === 0 && states.has(connection)) idleSetOf(state).add(connection);
      };
    },
    isAuthenticated: (connection: Connection) => states.get(connection)?.isAuthenticated === true,
    /** Records that a call of the connection has valid credentials. */
    markAuthenticated(connection: Connection): void {
      const state = states.get(connection);
      if (state === undefined || state.isAuthenticated) return;
      state.isAuthenticated = true;
      if (idle.unauthenticated.delete(connection)) idle.authenticated.add(connection);
    },
  };
}

/**
 * Removes and returns the item that was added first. In the worst case, it skips the gap of every removed item, which
 * takes 8 µs for 10,000 items.
 */
function takeFirst<Item>(items: Set<Item>): Item | undefined {
  const [item] = items;
  if (item !== undefined) items.delete(item);
  return item;
}
