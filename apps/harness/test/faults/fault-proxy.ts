import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { type DatabaseProxy, startDatabaseProxy } from '@order-gateway/postgres/testing/database-proxy';
import type { SelfSigned } from '@order-gateway/postgres/testing/self-signed';

/** The faults of a connection. */
export type ConnectionFault =
  /** The connection is cut after an insert or a change was committed, before or after the response is forwarded. */
  | 'cut before the response'
  | 'cut after the response'
  /** After a statement, the proxy forwards nothing and notifies neither side. */
  | 'half-open'
  /** After a statement, the proxy forwards one byte every 100 ms. */
  | 'trickle';

/** A proxy between the database and the gateways that disturbs their connections. */
export interface FaultProxy extends DatabaseProxy {
  /**
   * Disturbs the next connection that is used. Resolves when the fault begins. The fault lasts as long as the
   * connection.
   */
  disturb(fault: ConnectionFault): Promise<void>;
  /** Closes all connections, and closes new ones immediately for the given time. */
  rejectFor(ms: number): Promise<void>;
}

/** The server's message when an insert, or a change of state with its event, is committed. */
const insertCompleted = 'INSERT 0 ';

const trickleMs = 100;

/** The response to a request for TLS (PostgreSQL 18, 54.2.10). */
const acceptsTls = 'S';

/**
 * Starts a proxy that forwards everything until it is asked to disturb a connection. `isReset` decides how a connection
 * is cut. With a certificate, TLS ends at the proxy, because the proxy must read a response to cut the connection
 * before or after it.
 */
export async function startFaultProxy(
  databaseUrl: string,
  isReset: () => boolean,
  certificate?: SelfSigned,
): Promise<FaultProxy> {
  let next: { readonly fault: ConnectionFault; readonly begin: () => void } | undefined;
  let isRejecting = false;

  const beginFault = (faults: readonly ConnectionFault[]): ConnectionFault | undefined => {
    if (next === undefined || !faults.includes(next.fault)) return undefined;
    const { fault, begin } = next;
    next = undefined;
    begin();
    return fault;
  };
  const cut = (client: Socket) => (isReset() ? client.resetAndDestroy() : client.destroySoon());

  const proxy = await startDatabaseProxy(databaseUrl, (client, database) => {
    let fault: ConnectionFault | undefined;
    if (isRejecting) client.destroy();
    const pass = async (chunk: Buffer, to: Socket) => {
      for (let offset = 0; offset < chunk.length; ) {
        if (fault === 'half-open') return;
        const bytes = fault === 'trickle' ? 1 : chunk.length;
        to.write(chunk.subarray(offset, offset + bytes));
        offset += bytes;
        if (fault === 'trickle') await sleep(trickleMs);
      }
    };
    const passStatements = async (from: Socket) => {
      for await (const chunk of from) {
        fault ??= beginFault(['half-open', 'trickle']);
        await pass(chunk, database);
      }
    };
    const passResponses = async (to: Socket) => {
      for await (const chunk of database) {
        const isCut = fault === undefined && chunk.includes(insertCompleted);
        const cutFault = isCut ? beginFault(['cut before the response', 'cut after the response']) : undefined;
        if (cutFault === 'cut before the response') return cut(client);
        await pass(chunk, to);
        if (cutFault === 'cut after the response') return cut(client);
      }
    };
    const start = async () => {
      const session = certificate === undefined ? client : await acceptTls(client, certificate);
      await Promise.all([passStatements(session), passResponses(session)]);
    };
    // If one side ends, the proxy ends the other, so errors can be ignored.
    start().catch(() => {});
  });
  return {
    ...proxy,
    disturb: (fault) =>
      new Promise((begin) => {
        next = { fault, begin };
      }),
    async rejectFor(ms) {
      isRejecting = true;
      for (const socket of proxy.sockets) socket.destroy();
      await sleep(ms);
      isRejecting = false;
    },
  };
}

async function acceptTls(client: Socket, certificate: SelfSigned): Promise<TLSSocket> {
  await once(client, 'data');
  client.pause().write(acceptsTls);
  const session = new TLSSocket(client, { isServer: true, ...certificate });
  return session.on('error', () => {});
}
