import type { RandomBytes } from '@gateway/domain/base62';
import type { CheckoutTemplate } from '@gateway/domain/checkout-link';
import type { OrderStore } from '@gateway/domain/order-store';
import type { BaseUrl } from '@gateway/domain/payment-link';
import type { Admission } from './admission.ts';
import type { AnonymousCalls } from './auth/anonymous-calls.ts';
import type { Authenticate } from './auth/authenticate.ts';
import type { RateLimit } from './auth/rate-limit.ts';
import type { ReadBody } from './call-body.ts';
import type { CallLog } from './call-log.ts';
import type { Logger } from './logger.ts';
import type { Readiness } from './readiness.ts';
import type { TrustProxy } from './remote-address.ts';
import type { SecretsKeys, SigningSecrets } from './signing-secrets.ts';
import type { RecordCall } from './telemetry/metrics.ts';
import type { Tracing } from './telemetry/tracing.ts';

export interface GatewayDeps {
  readonly store: OrderStore;
  readonly randomBytes: RandomBytes;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number;
  readonly authenticate: Authenticate;
  readonly rateLimit: RateLimit;
  readonly admission: Admission;
  /** Bounds pages and failed authentications. */
  readonly anonymousCalls: AnonymousCalls;
  readonly readBody: ReadBody;
  readonly baseUrl: () => BaseUrl;
  /** Where the payment page's Pay button leads; absent: the page has none. */
  readonly checkoutTemplate: CheckoutTemplate | undefined;
  /** Decrypts the secrets that sign returns; absent without SECRETS_KEY. */
  readonly signingSecrets: SigningSecrets | undefined;
  /** Recognises orders whose personal data was erased; absent without SECRETS_KEY. */
  readonly erasureKeys: SecretsKeys | undefined;
  readonly readiness: Readiness;
  /** Absent: clients connect without a proxy. */
  readonly trustProxy: TrustProxy | undefined;
  readonly logger: Logger;
  readonly recordCall: RecordCall;
  /** Absent: no traces. */
  readonly tracing?: Tracing | undefined;
  readonly callLog: CallLog;
}
