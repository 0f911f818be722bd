import type { DescMessage, DescMethod, DescMethodUnary } from '@bufbuild/protobuf';
import type { AccountId, Logo, RandomBytes, StoredLogo } from '@order-gateway/domain/accounts';
import type { EventFeed } from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import type { BaseUrl } from '@order-gateway/domain/links';
import type { MerchantManagement } from '@order-gateway/domain/management';
import type { OrderStore } from '@order-gateway/domain/orders';
import type { Result } from '@order-gateway/domain/result';
import type { SecretsKeys } from '@order-gateway/runtime/encryption';
import type { AllowedAddresses } from '@order-gateway/runtime/ip-address';
import type { JsonFormOf } from '../calls/json-form.ts';
import type { Caller, Members, Operation, Reply } from '../calls/operation.ts';
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
  /** The number of days after an order's expiry for which some checkout system can still report a payment. */
  readonly lateDays: () => number;
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
type CheckedLogo = Logo & StoredLogo;

/** A handler for each method of a service, except for streams. */
export type Handlers<Methods, Kind extends Caller = Caller> = {
  readonly [Name in keyof Methods as Methods[Name] extends { methodKind: 'unary' } ? Name : never]: Handler<
    Methods[Name],
    Kind
  >['handle'];
};

interface Handler<Method, Kind extends Caller> {
  // Declared as a method, as in `Operation`.
  handle(members: Members, caller: Kind): Handled<Method>;
}

/** The outcome of a call to a method. The reply has each field of the method's response. */
export type Handled<Method> = Method extends { readonly output: infer Output extends DescMessage }
  ? Promise<Result<Reply<JsonFormOf<Output>>, Failure>>
  : never;

/**
 * Creates the operations of a service. `fieldErrors` contains the functions {@link Operation.fieldErrors} by the names
 * of their methods.
 */
export function operationsOf<Methods extends Readonly<Record<string, DescMethod>>>(
  { method: methods }: { readonly method: Methods },
  handlers: Handlers<Methods>,
  fieldErrors: Readonly<Record<string, Operation['fieldErrors']>> = {},
): Operation[] {
  return Object.entries<Operation['handle']>(handlers).map(([name, handle]) => ({
    method: methods[name] as DescMethodUnary,
    handle,
    fieldErrors: fieldErrors[name],
  }));
}
