import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { OrderSchema } from '@order-gateway/contract/gateway/v1/order_pb';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { pageLimit } from '@order-gateway/domain/requests';
import type { OrderRecord } from '../../operations/orders.ts';
import { filtersIn } from './orders.ts';
import { failurePage, type Page, type Response, storedResult, type Visit } from './visit.ts';

/** The members of the order record, in the contract's order. */
const columns = OrderSchema.fields.map(({ jsonName }) => jsonName as keyof OrderRecord);

/** Without this mark, spreadsheets do not recognize UTF-8. */
const byteOrderMark = '\ufeff';

/** The CSV file of all orders that match the filters of a list. */
export const exportPages: readonly Page[] = [
  { method: 'GET', path: '/orders.csv', isForAll: true, respond: exportOrders },
];

type OrderList = { readonly orders: readonly OrderRecord[]; readonly next_cursor?: string };

async function exportOrders(visit: Visit): Promise<Response> {
  const firstList = await listFrom(visit, undefined);
  if (!firstList.ok) return failurePage(visit, firstList.failure);
  const { signal } = visit.call.beginStream();
  const content = Readable.from(linesFrom(visit, firstList.value, signal));
  return { kind: 'file', name: 'orders.csv', type: 'text/csv; charset=utf-8', content };
}

/**
 * Yields the header line and the lines of all orders. Reads the next page of the list once the stream has taken the
 * previous one, and no page once the response has ended: the response to HEAD ends before its content. Each page counts
 * towards the merchant's rate limit and requires a valid session. If a page can't be read, throws an error, which
 * aborts the response. Otherwise, the file could be mistaken for a complete export.
 */
async function* linesFrom(visit: Visit, firstList: OrderList, signal: AbortSignal): AsyncGenerator<string> {
  const { deps, merchant, sessions, sessionDigest } = visit;
  yield byteOrderMark + lineWith(columns);
  for (let list = firstList; ; ) {
    yield list.orders.map(lineOf).join('');
    if (list.next_cursor === undefined || signal.aborted) return;
    for (;;) {
      const waitMs = deps.calls.rateLimit(merchant);
      if (waitMs === undefined) break;
      await sleep(waitMs, undefined, { signal });
    }
    const session = storedResult(await sessions.find(sessionDigest, deps.calls.callTimeoutMs));
    const next = session.ok ? await listFrom(visit, list.next_cursor, deps.calls.callTimeoutMs) : session;
    if (!next.ok) throw new Error(`the export ended early: ${next.failure.kind}`);
    list = next.value;
  }
}

function listFrom({ perform, query }: Visit, cursor: string | undefined, timeoutMs?: number) {
  const members = { ...filtersIn(query), limit: `${pageLimit.max}`, cursor };
  return perform<OrderList>(OrderService.method.listOrders, members, timeoutMs);
}

function lineOf(order: OrderRecord): string {
  return lineWith(columns.map((name) => order[name]));
}

function lineWith(values: readonly unknown[]): string {
  return `${values.map(cellOf).join(',')}\r\n`;
}

/**
 * Matches the positions at which a spreadsheet may find a formula in a text: at its beginning, after a line break, and
 * after each character that a spreadsheet can use as the separator of the file, even if a quote follows it. A
 * spreadsheet with a separator other than the comma splits even a quoted text. The characters of full width are
 * formulas for spreadsheets in East Asia.
 */
const formulaStart = /(?<=^|[;,|\t\r\n]"*)(?=[=+\-@＝＋－＠])|^(?=[\t\r])/g;

/** Returns a value as a cell (RFC 4180): a text in quotes, in which an apostrophe precedes each possible formula. */
function cellOf(value: unknown): string {
  if (value === undefined || typeof value === 'number') return `${value ?? ''}`;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `"${text.replace(formulaStart, "'").replaceAll('"', '""')}"`;
}
