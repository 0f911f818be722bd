import type { Http2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { networkOf } from '@order-gateway/runtime/ip-address';
import type { TrustProxy } from '@order-gateway/runtime/remote-address';
import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import type { penaltyLimits } from '../../limits.ts';

/** The restriction of a network that exceeded its limit. */
interface Restriction {
  /** New connections, oldest first, with the function that accepts each. */
  readonly waiting: Map<Socket, () => void>;
  /** When the network last exceeded its limit, by `performance.now()`. */
  exceededAt: number;
}

/**
 * Limits frames that cost the gateway more than the client, such as resets of streams (CVE-2023-44487), on
 * unauthenticated connections. Each such frame incurs a penalty. Penalties are counted by network, because otherwise
 * every new connection would have a new allowance. If a network exceeds its allowance, the connection that exceeded it
 * is closed. The network's next connections wait and are accepted slowly, because other clients may share the address.
 * A connection is rejected only if `waitingMax` already wait. Trusted proxies are exempt. Returns the function that
 * counts a penalty.
 *
 * The server must not have other connection listeners yet. It must be created with `pauseOnConnect`, so that nothing is
 * read from a connection that waits. Otherwise, Node.js would later process all of it in one turn of the event loop.
 */
export function createPenalties(
  server: Server,
  limits: typeof penaltyLimits,
  trustProxy: TrustProxy | undefined,
): (session: Http2Session) => void {
  const take = createTokenBuckets<string>(() => performance.now());
  const restrictions = new Map<string, Restriction>();

  const restrict = (network: string) => {
    const restriction = restrictions.get(network) ?? { waiting: new Map<Socket, () => void>(), exceededAt: 0 };
    restriction.exceededAt = performance.now();
    if (restrictions.has(network) || restrictions.size >= limits.restrictedNetworksMax) return;
    restrictions.set(network, restriction);
    const timer = setInterval(() => {
      const [accept] = restriction.waiting.values();
      if (accept !== undefined) accept();
      else if (performance.now() - restriction.exceededAt >= limits.restrictedMs) {
        clearInterval(timer);
        restrictions.delete(network);
      }
    }, 1_000 / limits.connectionsPerSecond).unref();
  };

  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const waiting = restrictions.get(networkOf(socket.remoteAddress))?.waiting;
    if (waiting !== undefined && waiting.size >= limits.waitingMax) return void socket.destroy();
    const stopWaiting = () => {
      waiting?.delete(socket);
      socket.off('close', stopWaiting);
    };
    const accept = () => {
      stopWaiting();
      for (const listener of listeners) listener.call(server, socket);
      socket.resume();
    };
    if (waiting === undefined) return accept();
    waiting.set(socket, accept);
    socket.on('close', stopWaiting);
  });

  return (session) => {
    if (session.destroyed) return;
    const { remoteAddress } = session.socket;
    if (remoteAddress === undefined || trustProxy?.(remoteAddress, 0)) return;
    const network = networkOf(remoteAddress);
    if (take(network, limits.perSecond) === undefined) return;
    restrict(network);
    session.destroy();
  };
}
