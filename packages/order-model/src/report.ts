import type { Call, History, Payment, Request, Response, State } from './model.ts';
import { reversalText } from './reversals.ts';
import { findUnexplained, smallest } from './search.ts';

/** Formats rows as lines of aligned columns. All rows must have the same number of cells. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}

/**
 * Describes an unexplained history for a person: a table of the calls that contradict each other, what is stored, and
 * the longest serial order of these calls. Times are in the unit of the history and relative to its first call.
 * Throws if the history is explained.
 */
export function describeUnexplained(history: History): string {
  const small = smallest(history);
  const unexplained = findUnexplained(small);
  if (unexplained === undefined) throw new Error('the history is explained');
  const calls = small.calls.toSorted((a, b) => a.sentAt - b.sentAt);
  const startsAt = calls[0]?.sentAt ?? 0;
  const numberOf = (step: Call) => calls.findIndex((call) => call.sentAt === step.sentAt) + 1;
  const rows = calls.map(({ sentAt, receivedAt, request, response }, index) => [
    String(index + 1),
    String(sentAt - startsAt),
    receivedAt === Infinity ? '-' : String(receivedAt - startsAt),
    requestText(request),
    response === undefined ? 'not needed, or none' : responseText(response),
  ]);
  const order = unexplained.longest.map((step) => `call ${numberOf(step)} (${step.request.kind})`).join(', ');
  const next = [...new Set(unexplained.next.map(numberOf))].map((number) => `call ${number}`).join(' or ');
  return [
    columns([['call', 'sent', 'received', 'request', 'response'], ...rows]),
    `stored: ${storedText(small)}`,
    `explained: ${order || 'nothing'}, which leaves the order ${stateText(unexplained.state)}`,
    next === '' ? 'this is not what is stored' : `contradiction: ${next} had to be next`,
  ].join('\n');
}

function requestText(request: Request): string {
  switch (request.kind) {
    case 'create':
      return `create ${request.content}`;
    case 'pay': {
      const { amount, currency, paidAtMs } = request.payment;
      return `pay ${idOf(request.payment)} ${amount} ${currency} at ${timeText(paidAtMs)}`;
    }
    case 'start':
    case 'end':
      return `${request.kind} ${request.attempt}`;
    case 'refund':
      return `refund ${request.refundId} ${request.amount ?? 'all'}`;
    case 'record refund': {
      const { refundId, providerId, amount, status, refundedAtMs = null, reason } = request;
      const parts = [request.kind, refundId, providerId, 'of', idOf(request), amount, status, reason];
      return [...parts, ...refundedText(refundedAtMs)].filter(Boolean).join(' ');
    }
    case 'record dispute': {
      const { disputeId, amount, currency, status, reason } = request;
      const parts = [request.kind, disputeId, 'of', idOf(request), amount, currency, status, reason];
      return parts.filter(Boolean).join(' ');
    }
    case 'fail refund':
      return `${request.kind} ${request.refundId}`;
    default:
      return request.kind;
  }
}

function responseText({ outcome, shown, leaseEndsAtMs, reversal }: Response): string {
  const parts = [outcome, shown?.status, shown?.paymentId, leaseEndsAtMs && `until ${timeText(leaseEndsAtMs)}`];
  const lists = [...(shown?.refusedIds?.map((id) => `refused ${id}`) ?? []), ...(shown?.reversals ?? [])];
  return [...parts, lists.join(', '), reversal].filter(Boolean).join(' ');
}

function storedText({ stored }: History): string {
  if (stored === null) return 'nothing';
  const { status, payment, lease, refused, reversals, expiresAtMs, events } = stored;
  return [
    status,
    ...(payment ? [`paid by ${idOf(payment)}`] : []),
    ...(lease ? [`claimed by ${lease.attempt} until ${timeText(lease.endsAtMs)}`] : []),
    ...(expiresAtMs === null ? [] : [`expires at ${timeText(expiresAtMs)}`]),
    ...refused.map((payment) => `refused ${idOf(payment)} (${payment.code})`),
    ...reversals.map(({ statuses, refundedAtMs, ...item }) => {
      const text = reversalText({ ...item, refundedAtMs, statuses: statuses.map(({ status }) => status) });
      return [text, ...refundedText(refundedAtMs)].join(' ');
    }),
    `events: ${events.map(({ type, atMs }) => `${type} at ${timeText(atMs)}`).join(', ') || 'none'}`,
  ].join('; ');
}

function stateText({ content, status, payment, lease, refused, reversals }: State): string {
  if (content === null) return 'uncreated';
  const leaseText = lease?.isLive === true ? [`claimed by ${lease.attempt}`] : [];
  const refusedPayments = refused.map((payment) => `refused ${idOf(payment)}`);
  const paidBy = payment ? ` by ${idOf(payment)}` : '';
  return [`${status}${paidBy}`, ...leaseText, ...refusedPayments, ...reversals.map(reversalText)].join(', ');
}

function idOf({ checkout, paymentId }: Pick<Payment, 'checkout' | 'paymentId'>): string {
  return `${checkout}/${paymentId}`;
}

function refundedText(refundedAtMs: number | null): string[] {
  return refundedAtMs === null ? [] : [`refunded at ${timeText(refundedAtMs)}`];
}

function timeText(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, -1) : 'any time';
}
