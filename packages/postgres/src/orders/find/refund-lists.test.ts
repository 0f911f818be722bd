import type { AccountId } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import type { OnServers } from '../../merchant-servers.ts';
import { type RefundLists, refundListsOn } from './refund-lists.ts';

type Page = Awaited<ReturnType<RefundLists['listPendingRefunds']>>;

const found: Page = { kind: 'found', refunds: [], isIncomplete: false };

test.each<[string, readonly Page[], unknown]>([
  ['all servers respond, the list is complete', [found, found], found],
  ['a server is lost, the list is incomplete', [found, { kind: 'unavailable' }], { ...found, isIncomplete: true }],
  ['no server responds, there is no list', [{ kind: 'unavailable' }], { kind: 'unavailable' }],
])('if %s', async (_case, pages, list) => {
  const opened = pages.map((page) => ({ listPendingRefunds: async () => page }) as unknown as RefundLists);
  const servers = {
    onEach: () => async () => [],
    callEach: (timeoutMs, use) => Promise.all(opened.map((lists) => use(lists, timeoutMs))),
  } as Partial<OnServers<RefundLists>> as OnServers<RefundLists>;
  expect(await refundListsOn(servers).listPendingRefunds(1 as AccountId, { limit: 1 }, 1)).toEqual(list);
});
