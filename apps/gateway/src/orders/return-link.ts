import type { LinkedOrder } from '@gateway/domain/order-store';
import { returnUrlFor } from '@gateway/domain/return-url';
import type { GatewayDeps } from '../gateway-deps.ts';

/** The complete address at which the customer returns to the merchant, with the order's status of now. */
export function returnLink(_deps: GatewayDeps, { order }: LinkedOrder): string {
  return returnUrlFor(order);
}
