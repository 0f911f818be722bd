import type { BaseUrl } from '@gateway/domain/payment-link';
import type { Authenticate } from './authenticate.ts';
import type { CreateOrderDeps } from './create-order.ts';
import type { Log } from './log.ts';

/** What both doors need. */
export interface GatewayDeps extends CreateOrderDeps {
  readonly authenticate: Authenticate;
  readonly baseUrl: () => BaseUrl;
  /** The client ids of checkout services, which may resolve every merchant's payment links. */
  readonly checkoutClients: ReadonlySet<string>;
  readonly log: Log;
}
