import type { Logger } from '@order-gateway/runtime/logger';
import type { Gateway } from '../gateway/gateway.ts';
import type { SeenReversals } from '../providers/provider.ts';
import type { Attempt } from '../store/store.ts';

/** Reports refunds and disputes of a payment. The gateway ignores those that it already has. */
export async function reportReversals(
  { gateway, logger }: { readonly gateway: Gateway; readonly logger: Logger },
  { orderToken, paymentId }: Attempt,
  { refunds, disputes }: SeenReversals,
): Promise<void> {
  const payment = { orderToken, paymentId: paymentId ?? '' };
  const refusals = await Promise.all([
    ...refunds.map((refund) => gateway.recordRefund({ ...payment, ...refund })),
    ...disputes.map((dispute) => gateway.recordDispute({ ...payment, ...dispute })),
  ]);
  for (const refusal of refusals)
    if (refusal !== undefined) logger.error({ payment_id: paymentId, refusal }, 'a refund was not recorded');
}
