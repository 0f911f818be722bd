import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Merchant } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import type { Order } from '@order-gateway/domain/orders/order';
import { parseOrderList } from '@order-gateway/domain/requests/list-parameters';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Caller, Members, Operation, OperationDeps } from '../operation.ts';
import { storageFailure } from '../retry-after.ts';
import { orderRecord } from './order-response.ts';

export function listOrdersOperation(deps: Pick<OperationDeps, 'store' | 'baseUrl'>): Operation {
  return {
    method: OrderService.method.listOrders,
    async handle(members, caller: Caller<Merchant>) {
      const page = await listOrders(deps, caller, members);
      if (!page.ok) return page;
      const orders = page.value.orders.map((order) => orderRecord(order, caller.account.mode, deps.baseUrl()));
      return success({ body: { orders, next_cursor: page.value.nextCursor }, outcome: 'ok' });
    },
  };
}

/** Lists the merchant's orders, newest first; the last page has no cursor. With a filter by metadata a page can be short. */
async function listOrders(
  { store }: Pick<OperationDeps, 'store'>,
  caller: Caller<Merchant>,
  input: Members,
): Promise<Result<{ readonly orders: readonly Order[]; readonly nextCursor: string | undefined }, Failure>> {
  const { id } = caller.account;
  const parsed = parseOrderList(id, input);
  if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
  const { filter, cursorAfter } = parsed.value;
  const listed = await store.list(id, { ...filter, limit: filter.limit + 1 }, caller.timeLeftMs());
  if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
  const orders = listed.orders.slice(0, filter.limit);
  const last = listed.orders.length > filter.limit ? orders.at(-1) : undefined;
  const end = last ?? listed.scannedTo;
  return success({ orders, nextCursor: end && cursorAfter(end) });
}
