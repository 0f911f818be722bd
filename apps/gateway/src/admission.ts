import type { MerchantId } from '@gateway/domain/merchant';
import type { admissionLimits } from './limits.ts';

/** Decides, before the body of a call is read, whether there is room for it; and then, when its work begins. */
export type Admission = ReturnType<typeof createAdmission>;

/** The place of a call. */
export type Place = NonNullable<ReturnType<Admission['enter']>>;

interface ClientCalls {
  inFlight: number;
  atWork: number;
  /** What begins the work of each call that waits, the oldest first. */
  readonly waiting: Set<() => void>;
}

/**
 * Admits calls until there are too many for the speed at which orders are stored. From then on each client has an equal share of
 * the limit: one below its share is still admitted, as the others get no new calls until they are below theirs, too. Of the
 * admitted ones only so many are worked on at a time that the turns of the event loop stay short.
 */
export function createAdmission({
  oldestOrderMs,
  limits,
}: {
  /** The age in milliseconds of the oldest order that is not stored yet. */
  readonly oldestOrderMs: () => number;
  readonly limits: typeof admissionLimits;
}) {
  const clients = new Map<MerchantId, ClientCalls>();
  /** The clients with waiting calls, in turn. */
  const turns = new Set<ClientCalls>();
  let inFlight = 0;
  let atWork = 0;

  const hasRoom = (own: number) => {
    if (inFlight < limits.callsMaxWhenSlow) return true;
    const limit = oldestOrderMs() > limits.orderAgeMaxMs ? limits.callsMaxWhenSlow : limits.callsMax;
    if (inFlight < limit) return true;
    const shares = clients.size + (own === 0 ? 1 : 0);
    // Many clients that come one after the other could fill their shares before the first have emptied theirs.
    return own < Math.max(1, limit / shares) && inFlight < 2 * limits.callsMax;
  };

  /** Gives the place at work that a client has left to its own next call, if it has few, or to the client whose turn it is. */
  const beginNext = (left: ClientCalls) => {
    const isLow = left.atWork < limits.atWorkMin && left.waiting.size > 0;
    const [client] = isLow ? [left] : atWork < limits.atWorkMax ? turns : [];
    const [beginWork] = client?.waiting ?? [];
    if (client === undefined || beginWork === undefined) return;
    client.waiting.delete(beginWork);
    turns.delete(client);
    if (client.waiting.size > 0) turns.add(client);
    beginWork();
  };

  return {
    /** Takes a place for a call of this client; `undefined` where there is no room. */
    enter(id: MerchantId) {
      const client = clients.get(id) ?? { inFlight: 0, atWork: 0, waiting: new Set() };
      if (!hasRoom(client.inFlight)) return undefined;
      clients.set(id, client);
      client.inFlight += 1;
      inFlight += 1;
      const turn = Promise.withResolvers<void>();
      let isAtWork = false;
      const beginWork = () => {
        isAtWork = true;
        client.atWork += 1;
        atWork += 1;
        turn.resolve();
      };
      return {
        /** Asks for the call's turn, when its body is there. Resolves when the work may begin; `undefined`: now. */
        begin(): Promise<void> | undefined {
          if (isAtWork) return undefined;
          if (atWork < limits.atWorkMax || client.atWork < limits.atWorkMin) {
            beginWork();
            return undefined;
          }
          client.waiting.add(beginWork);
          turns.add(client);
          return turn.promise;
        },
        /** Makes room, however the call ended, also before its turn. Called once. */
        leave() {
          client.inFlight -= 1;
          inFlight -= 1;
          if (client.inFlight === 0) clients.delete(id);
          client.waiting.delete(beginWork);
          if (client.waiting.size === 0) turns.delete(client);
          if (!isAtWork) return;
          client.atWork -= 1;
          atWork -= 1;
          beginNext(client);
        },
      };
    },
  };
}
