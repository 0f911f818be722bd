import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Account } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import type { ManagementCaller } from '@order-gateway/domain/management';
import type { NewOrder, Order } from '@order-gateway/domain/orders';
import type { FieldError } from '@order-gateway/domain/requests';
import type { Result } from '@order-gateway/domain/result';

/** An order that a call concerns. It has no service_order_id before it is stored. */
export type NotedOrder = Order | NewOrder;

/** The part of a call that the steps of an operation use. */
export interface Deadline {
  /** Sets the order that the call concerns, for its log line. The last one counts. */
  concerns(order: NotedOrder): void;
  /** Returns the remaining time in milliseconds, which may be negative. Every wait of the call uses it as its limit. */
  timeLeftMs(): number;
}

/** The caller of an operation, and the time limit of the call. */
export interface Caller<Kind extends Account = Account> extends Deadline, ManagementCaller {
  readonly account: Kind;
  /** The client id of the request. */
  readonly clientId: string;
  /** The client secret of the request: the key of its `v1=` checksum. */
  readonly clientSecret: string;
  /**
   * Whether the caller prefers errors for mistakes that the gateway would otherwise ignore. Unknown members are
   * rejected before the operation is performed.
   */
  readonly isStrict: boolean;
  /** How long the caller prefers to wait for a first result, in milliseconds; 0 means that it does not wait. */
  readonly waitMs: number;
  /**
   * Waits without using the gateway's capacity. The time does not count towards the deadline. The signal aborts when
   * the caller disconnects.
   */
  pause<Value>(wait: (signal: AbortSignal) => Promise<Value>): Promise<Value>;
}

/**
 * The members of a request under their API names, with values of any type. A member that was not sent is `undefined`.
 */
export type Members = Readonly<Record<string, unknown>>;

/**
 * How a call succeeded. `replayed` means that an earlier call had the same effect and this one had none; `accepted`
 * means that the effect follows later.
 */
export type Success = 'created' | 'replayed' | 'accepted' | 'ok';

/** A successful response, as the JSON form of the method's response message. */
export interface Reply<Body extends object = object> {
  readonly body: Body;
  readonly outcome: Success;
  /** The preference that was honoured (RFC 7240, 3). */
  readonly preferenceApplied?: string | undefined;
}

/** One operation of the API. The contract's options on the method declare its callers and its JSON route. */
export interface Operation {
  readonly method: DescMethodUnary;
  // Declared as a method, because TypeScript then lets an operation require the kind of account that its contract
  // names. `receive` guarantees that kind.
  handle(members: Members, caller: Caller): Promise<Result<Reply, Failure>>;
  /**
   * Returns the errors of the members. They are reported together with unknown members; if this function is absent,
   * only the unknown members are reported.
   */
  readonly fieldErrors?: ((members: Members) => readonly FieldError<string>[]) | undefined;
}

/** Returns `replayed` if an earlier call had the same effect, and otherwise `ok`. */
export function outcomeOf({ replayed }: { readonly replayed: boolean }): Success {
  return replayed ? 'replayed' : 'ok';
}
