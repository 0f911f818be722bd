import type { AccountId, Credentials } from '@order-gateway/domain/accounts';
import type { CheckoutTemplate } from '@order-gateway/domain/links';
import type { PostgresOrderStore } from '@order-gateway/postgres/order-store';
import type { ReadBody } from './calls/body/call-body.ts';
import type { CallDeps } from './calls/call.ts';
import type { ReceiveDeps } from './calls/receive.ts';
import type { OperationDeps } from './operations/service.ts';
import type { TrustProxy } from './runtime/network/remote-address.ts';
import type { Readiness } from './runtime/start/readiness.ts';
import type { PageWatch } from './watches/page-watch.ts';

/** The demo merchant. */
export interface Demo extends Credentials {
  readonly accountId: AccountId;
}

/** The dependencies of the servers on both ports. */
export interface GatewayDeps extends OperationDeps, ReceiveDeps, CallDeps {
  readonly readBody: ReadBody;
  /** A connection whose client reads nothing of an HTTP/1.1 response for this long is closed. */
  readonly responseTakenTimeoutMs: number;
  /** The template for the address of the payment page's Pay button; absent: the page has no button. */
  readonly checkoutTemplate: CheckoutTemplate | undefined;
  /** How the Pay button opens the address: `get` is a link, `post` a form. */
  readonly checkoutMethod: 'get' | 'post';
  readonly pageWatch: PageWatch;
  /** Finds a logo by its digest. */
  readonly findLogo: PostgresOrderStore['findLogo'];
  /** Where to report a vulnerability, as a URI; absent: there is no security.txt. */
  readonly securityContact?: string | undefined;
  /** Absent: the gateway has no demo, because its database is not the embedded one. */
  readonly demo?: Demo | undefined;
  readonly readiness: Readiness;
  /** Absent: clients connect without a proxy. */
  readonly trustProxy: TrustProxy | undefined;
}
