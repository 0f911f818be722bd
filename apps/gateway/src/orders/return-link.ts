import type { LinkedOrder } from '@gateway/domain/order-store';
import { returnUrlFor } from '@gateway/domain/return-url';
import type { GatewayDeps } from '../gateway-deps.ts';

/**
 * The complete address at which the customer returns to the merchant, with the order's status of now. It is signed where the
 * merchant has a signing secret, and unsigned where SECRETS_KEY is not the key that encrypted it.
 */
export function returnLink({ signingSecrets, now }: GatewayDeps, { order, merchant }: LinkedOrder): string {
  const { signingSecret } = merchant;
  const secret = signingSecret === null ? undefined : signingSecrets?.decrypt(order.merchantId, signingSecret);
  return returnUrlFor(order, secret && { secret, signedAtSeconds: Math.floor(now() / 1_000) });
}
