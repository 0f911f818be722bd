import type { DescMethod, DescMethodUnary } from '@bufbuild/protobuf';
import type { Account, AccountId, Logo, RandomBytes } from '@order-gateway/domain/accounts';
import type { EventFeed } from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import type { BaseUrl } from '@order-gateway/domain/links';
import type { ManagementCaller, MerchantManagement } from '@order-gateway/domain/management';
import type { NewOrder, Order, OrderStore } from '@order-gateway/domain/orders';
import type { FieldError } from '@order-gateway/domain/requests';
import type { Result } from '@order-gateway/domain/result';
import type { SecretsKeys } from '@order-gateway/runtime/encryption';
import type { AllowedAddresses } from '../runtime/network/ip-address.ts';
import type { SigningSecrets } from '../runtime/secrets/signing-secrets.ts';
import type { CountRefusal } from '../runtime/telemetry/metrics.ts';
import type { EventWatch } from '../watches/event-watch.ts';

/** The dependencies of all operations. Each operation declares which of them it uses. */
export interface OperationDeps {
  readonly store: OrderStore & EventFeed;
  readonly randomBytes: RandomBytes;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number;
  readonly baseUrl: () => BaseUrl;
  /** Counts a payment that was refused. */
  readonly countRefusal: CountRefusal;
  /** Encrypts and decrypts the secrets that sign webhooks and return URLs; absent without SECRETS_KEY. */
  readonly signingSecrets: SigningSecrets | undefined;
  readonly eventWatch: EventWatch;
  /** Recognizes orders whose personal data was erased; absent without SECRETS_KEY. */
  readonly erasureKeys: SecretsKeys | undefined;
  /** The settings that merchants manage themselves; absent if only the operator may manage them. */
  readonly management: MerchantManagement | undefined;
  /** The addresses to which webhooks may be sent. */
  readonly webhookAddresses: AllowedAddresses;
  readonly ping: Ping;
  /** Checks the image of a brand's logo. */
  readonly checkLogo: CheckLogo;
}

/** Sends a signed test message, so that a merchant can check its endpoint. `status` is absent without a response. */
export type Ping = (
  merchantId: AccountId,
  url: string,
  signingSecrets: readonly Uint8Array[],
) => Promise<Result<{ readonly status?: number; readonly text: string }, Failure>>;

/** Checks the image of a logo by decoding it, within the time of the call. */
export type CheckLogo = (
  clientId: string,
  image: Uint8Array,
  timeLeftMs: () => number,
) => Promise<Result<CheckedLogo, Failure>>;

/** A logo whose image can be decoded. The image is stored as it was sent. */
interface CheckedLogo extends Logo {
  readonly image: Uint8Array;
}

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
export interface Reply {
  readonly body: object;
  readonly outcome: Success;
  /** The preference that was honoured (RFC 7240, 3). */
  readonly preferenceApplied?: string | undefined;
}

/** One operation of the API. The contract's options on the method declare its callers and its JSON route. */
export interface Operation {
  readonly method: DescMethodUnary;
  // Declared as a method, because TypeScript then lets an operation require the kind of account that its contract
  // names. The intake guarantees that kind.
  handle(members: Members, caller: Caller): Promise<Result<Reply, Failure>>;
  /**
   * Returns the errors of the members. They are reported together with unknown members; if this function is absent,
   * only the unknown members are reported.
   */
  readonly fieldErrors?: ((members: Members) => readonly FieldError<string>[]) | undefined;
}

/** A handler for each method of a service, except for streams. */
export type Handlers<Methods, Handle> = {
  readonly [Name in keyof Methods as Methods[Name] extends { methodKind: 'unary' } ? Name : never]: Handle;
};

/**
 * Creates the operations of a service. `fieldErrors` contains the functions {@link Operation.fieldErrors} by the names
 * of their methods.
 */
export function operationsOf<Methods extends Readonly<Record<string, DescMethod>>>(
  { method: methods }: { readonly method: Methods },
  handlers: Handlers<Methods, Operation['handle']>,
  fieldErrors: Readonly<Record<string, Operation['fieldErrors']>> = {},
): Operation[] {
  return Object.entries<Operation['handle']>(handlers).map(([name, handle]) => ({
    method: methods[name] as DescMethodUnary,
    handle,
    fieldErrors: fieldErrors[name],
  }));
}

/** Returns `replayed` if an earlier call had the same effect, and otherwise `ok`. */
export function outcomeOf({ replayed }: { readonly replayed: boolean }): Success {
  return replayed ? 'replayed' : 'ok';
}
