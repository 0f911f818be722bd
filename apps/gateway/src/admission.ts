import type { MerchantId } from '@gateway/domain/merchant';

/** Decides, before the body of a call is read, whether there is room for it. */
export interface Admission {
  /** Whether a call of this client may start now. One that started must {@link leave}, however it ends. */
  enter(id: MerchantId): boolean;
  leave(id: MerchantId): void;
}

export interface AdmissionOptions {
  /** The age in milliseconds of the oldest order that is not stored yet. */
  readonly oldestOrderMs: () => number;
  readonly limits: {
    /** Calls in flight above which only those of clients below their share start. */
    readonly callsMax: number;
    /** The same while the oldest order is older than `orderAgeMaxMs`. */
    readonly callsMaxWhenSlow: number;
    readonly orderAgeMaxMs: number;
  };
}

/**
 * Admits calls until there are too many for the speed at which orders are stored. From then on each client has an equal share of
 * the limit: one below its share is still admitted, as the others get no new calls until they are below theirs, too.
 */
export function createAdmission({ oldestOrderMs, limits }: AdmissionOptions): Admission {
  const inFlight = new Map<MerchantId, number>();
  let total = 0;

  const hasRoom = (own: number) => {
    if (total < limits.callsMaxWhenSlow) return true;
    const limit = oldestOrderMs() > limits.orderAgeMaxMs ? limits.callsMaxWhenSlow : limits.callsMax;
    if (total < limit) return true;
    const clients = inFlight.size + (own === 0 ? 1 : 0);
    // Many clients that come one after the other could fill their shares before the first have emptied theirs.
    return own < Math.max(1, limit / clients) && total < 2 * limits.callsMax;
  };

  return {
    enter(id) {
      const own = inFlight.get(id) ?? 0;
      if (!hasRoom(own)) return false;
      inFlight.set(id, own + 1);
      total += 1;
      return true;
    },
    leave(id) {
      const own = inFlight.get(id) ?? 0;
      if (own === 1) inFlight.delete(id);
      else inFlight.set(id, own - 1);
      total -= 1;
    },
  };
}
