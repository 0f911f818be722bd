import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderToken } from '@order-gateway/domain/links';
import type { LinkedOrder, OrderStore } from '@order-gateway/domain/orders';
import type { Logger } from '@order-gateway/runtime/logger';
import { pageWatchLimits } from '../limits.ts';
import { createWatch } from './watch.ts';

/** Notifies open payment pages of changes. */
export type PageWatch = ReturnType<typeof createPageWatch>;

/**
 * Returns the version of an order's page as an entity tag (RFC 9110, 8.8.3). The version changes with the status of the
 * order, when a payment starts, is extended or ends, when a payment is refused, and with each refund or dispute.
 */
export function pageVersion({ order }: LinkedOrder): string {
  const inProgress = order.lease?.isLive ? `-in-progress-until-${order.lease.endsAtMs}` : '';
  const refusedAtMs = order.refusedPayments.at(-1)?.refusedAtMs;
  const refused = refusedAtMs === undefined ? '' : `-refused-${refusedAtMs}`;
  const reversed = order.reversals.version === 0 ? '' : `-reversed-${order.reversals.version}`;
  return `W/"${order.orderStatus}${inProgress}${refused}${reversed}"`;
}

interface Subject {
  readonly merchantId: AccountId;
  readonly token: OrderToken;
  readonly version: string;
}

/**
 * Creates the watch for open pages; a process needs only one. Every second, it reads the orders of all waiting pages,
 * in batches.
 */
export function createPageWatch(findForPage: OrderStore['findForPage'], logger: Logger) {
  const { waiters, wait, close } = createWatch<Subject, LinkedOrder>({
    ...pageWatchLimits,
    logger,
    async look(waiters) {
      const tokens = [...new Set(Array.from(waiters, ({ subject }) => subject.token))];
      for (let start = 0; start < tokens.length; start += pageWatchLimits.batchMax) {
        const batch = tokens.slice(start, start + pageWatchLimits.batchMax);
        const found = await Promise.all(batch.map((token) => findForPage(token, pageWatchLimits.lookupTimeoutMs)));
        const links = new Map(found.flatMap((link) => (link.kind === 'found' ? [[link.order.orderToken, link]] : [])));
        for (const { subject, finish } of waiters) {
          const link = links.get(subject.token);
          if (link !== undefined && pageVersion(link) !== subject.version) finish(link);
        }
      }
    },
  });
  return {
    /**
     * Resolves with the order once its page has another version, and with `undefined` if the wait ends first. Resolves
     * with `undefined` immediately if too many pages of this order or of its merchant already wait. A merchant's pages
     * may not take more slots than remain free.
     */
    async changed(link: LinkedOrder, limits: Parameters<typeof wait>[1]): Promise<LinkedOrder | undefined> {
      const { merchantId, orderToken: token } = link.order;
      const { waitersMax, waitersPerOrder } = pageWatchLimits;
      const ofMerchant = [...waiters].filter(({ subject }) => subject.merchantId === merchantId);
      const ofOrder = ofMerchant.filter(({ subject }) => subject.token === token);
      if (ofOrder.length >= waitersPerOrder || ofMerchant.length >= waitersMax - waiters.size) return undefined;
      return wait({ merchantId, token, version: pageVersion(link) }, limits);
    },
    close,
  };
}
