import { isClientId } from '@order-gateway/domain/accounts';
import type { Html } from '@order-gateway/pages/html-page';
import { schemaVersion } from '@order-gateway/postgres/schema-version';
import { html } from 'hono/html';
import { commit, version } from '../../../runtime/telemetry/version.ts';
import { readRowId } from '../forms.ts';
import { timeOf } from '../layout.ts';
import { operatorPath } from './operator-access.ts';
import type { OperatorReads } from './operator-reads.ts';

/** The maximum number of rows on a page. */
const pageLimit = 50;

/**
 * The maximum number of failing endpoints that are shown, and of waiting deliveries that are counted for each endpoint.
 * Each endpoint needs a separate SQL statement.
 */
const failingMax = 20;
const waitingMax = 100;

/** A page of the operators' view. */
export interface OperatorPage {
  readonly path: string;
  readonly title: string;
  content(reads: OperatorReads, query: URLSearchParams): Promise<Html>;
}

export const operatorPages: readonly OperatorPage[] = [
  { path: '', title: 'Health', content: healthPage },
  { path: '/refused-payments', title: 'Refused payments', content: refusedPaymentsPage },
  { path: '/accounts', title: 'Accounts', content: accountsPage },
  { path: '/audit-log', title: 'Audit log', content: auditLogPage },
];

async function healthPage({ webhooks, readHealth }: OperatorReads): Promise<Html> {
  const processes = (await readHealth()).map(({ worker, isReady }) => [
    worker === undefined ? 'This process' : `Worker ${worker}`,
    isReady ? badge('Ready', 'paid') : badge('Not ready', 'untrusted'),
  ]);
  const fields = [['Version', version], ['Commit', commit], ['Schema', schemaVersion], ...processes];
  return html`<div class="card"><h2>This gateway</h2>
<dl>${fields.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
</div>
<div class="card"><h2>Failing webhook endpoints</h2>
${await failingEndpoints(webhooks).catch(unreadable)}
</div>`;
}

async function failingEndpoints(webhooks: OperatorReads['webhooks']): Promise<Html> {
  const found = await webhooks.listFailing(failingMax + 1);
  const rows: Html[][] = [];
  for (const { merchantId, endpointId, failingSince, disabledAt, ...failing } of found.slice(0, failingMax)) {
    const { waiting, lastResult } = await webhooks.readBacklog(merchantId, endpointId, waitingMax);
    rows.push([
      twoLines(failing.url, endpointId),
      twoLines(failing.merchantName, failing.clientId),
      html`${failingSince && timeOf(failingSince.getTime(), 'en')} ${disabledAt === null ? '' : badge('Disabled', '')}
<br><span class="soft">${waiting}${waiting === waitingMax ? ' or more' : ''} deliveries wait</span>`,
      html`<bdi class="badge">${lastResult ?? 'None yet'}</bdi>`,
    ]);
  }
  return html`${table(['Endpoint', 'Merchant', 'Failing since', 'Last result'], rows, 'No endpoint fails.')}
${found.length > failingMax ? html`<p>More endpoints fail. These are the ones that have failed for the longest time.</p>` : ''}`;
}

async function refusedPaymentsPage({ listOwed, listRefusals }: OperatorReads): Promise<Html> {
  const columns = ['Refused', 'Amount and reason', 'Payment and checkout system', 'Order and merchant'];
  const rowOf = (refused: Awaited<ReturnType<typeof listRefusals>>[number], note: Html | '') => [
    html`${timeOf(refused.refusedAt.getTime(), 'en')} ${note}`,
    html`<div class="id">${twoLines(`${refused.amount} ${refused.currency}`, refused.code)}</div> ${refused.mode === 'test' ? badge('Test', '') : ''}`,
    twoLines(refused.paymentId, refused.checkoutClientId ?? 'simulated'),
    twoLines(refused.orderId, refused.clientId),
  ];
  const owed = (await listOwed(pageLimit)).map((refused) =>
    rowOf(refused, html`<br><span class="soft">Owed for ${ageOf(refused.refusedAt)}</span>`),
  );
  const latest = (await listRefusals(pageLimit)).map((refused) =>
    rowOf(refused, refused.refundedAt === null ? '' : badge('Refunded', 'paid')),
  );
  return html`<div class="card"><h2>Owed to customers</h2>
<p>The oldest ${pageLimit}, oldest first. Checkout systems have to refund them, and report the refunds.
<code>orders refused --open</code> lists more.</p>
${table(columns, owed, 'No money is owed.')}
</div>
<div class="card"><h2>Latest</h2>
<p>The latest ${pageLimit}, newest first. <code>orders refused</code> lists more.</p>
${table(columns, latest, 'No payment was refused.')}
</div>`;
}

/** Returns how long ago a time was, in days, or in hours if it was less than two days ago. */
function ageOf(time: Date): string {
  const hours = Math.floor((Date.now() - time.getTime()) / 3_600_000);
  const [count, unit] = hours < 48 ? [hours, 'hour'] : [Math.floor(hours / 24), 'day'];
  return new Intl.NumberFormat('en', { style: 'unit', unit, unitDisplay: 'long' }).format(count);
}

async function accountsPage({ accounts }: OperatorReads, query: URLSearchParams): Promise<Html> {
  const listed = await accounts.list({ limit: pageLimit + 1, afterClientId: clientIdIn(query, 'after') });
  const shown = listed.slice(0, pageLimit);
  const rows = shown.map(({ name, clientId, kind, mode, disabledAt, liveSecrets, createdAt }) => [
    twoLines(name, clientId),
    html`${kind === 'checkout' ? 'Checkout system' : `Merchant, ${mode}`}`,
    disabledAt === null ? badge('Enabled', 'paid') : badge('Disabled', ''),
    html`${liveSecrets}`,
    timeOf(createdAt.getTime(), 'en'),
    html`<a href="${operatorPath}/audit-log?${new URLSearchParams({ client_id: clientId })}">Audit log</a>`,
  ]);
  return html`<div class="card">
${table(['Account', 'Kind', 'Status', 'Live secrets', 'Created', 'Actions'], rows, 'There are no accounts.')}
${nextPageLink(listed.length > pageLimit, '/accounts', { after: shown.at(-1)?.clientId ?? '' })}
</div>`;
}

async function auditLogPage({ accounts }: OperatorReads, query: URLSearchParams): Promise<Html> {
  const clientId = clientIdIn(query, 'client_id');
  const before = readRowId(query.get('before')) ?? Number.MAX_SAFE_INTEGER;
  const found = await accounts.log({ clientId, before, limit: pageLimit + 1 });
  const shown = found.slice(0, pageLimit);
  const rows = shown.map(({ createdAt, action, actor, clientId: account, details }) => [
    timeOf(createdAt.getTime(), 'en'),
    html`<span class="badge">${action}</span>`,
    twoLines(actor, account === actor ? '' : (account ?? '')),
    html`<dl class="fields-of">${Object.entries(Object(details)).map(
      ([name, value]) =>
        html`<div><dt><bdi>${name}</bdi></dt> <dd><bdi>${typeof value === 'string' ? value : JSON.stringify(value)}</bdi></dd></div>`,
    )}</dl>`,
  ]);
  const filter =
    clientId === undefined
      ? ''
      : html`<p>Only <bdi>${clientId}</bdi>. <a href="${operatorPath}/audit-log">All accounts</a></p>`;
  return html`<div class="card">${filter}
${table(['Time', 'Action', 'Who and account', 'Details'], rows, 'There are no entries.')}
${nextPageLink(found.length > pageLimit, '/audit-log', { ...(clientId && { client_id: clientId }), before: `${shown.at(-1)?.id}` })}
</div>`;
}

/** Renders the error of a failed read. The stores' errors contain no values. */
export function unreadable(error: Error): Html {
  return html`<p class="error" role="alert">This can’t be read from the database: ${error.message}</p>`;
}

function clientIdIn(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name) ?? '';
  return isClientId(text) ? text : undefined;
}

/** Renders a table. A wide one scrolls, by keys too if it has the focus, because it may contain no link. */
function table(columns: readonly string[], rows: readonly (readonly Html[])[], empty: string): Html {
  if (rows.length === 0) return html`<p>${empty}</p>`;
  const cells = (row: readonly Html[]) =>
    row.map((cell, index) => html`<td data-label="${columns[index]}">${cell}</td>`);
  return html`<div class="table" tabindex="0"><table>
<thead><tr>${columns.map((column) => html`<th>${column}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${cells(row)}</tr>`)}</tbody>
</table></div>`;
}

function nextPageLink(hasMore: boolean, path: string, query: Record<string, string>): Html | '' {
  return hasMore
    ? html`<p><a rel="next" href="${operatorPath}${path}?${new URLSearchParams(query)}">Next page</a></p>`
    : '';
}

function twoLines(first: string, second: string): Html {
  return html`${idOrText(first)}<br><span class="soft">${idOrText(second)}</span>`;
}

/** Renders a client id on one line, because people copy and compare it. */
function idOrText(text: string): Html {
  return isClientId(text) ? html`<bdi class="id">${text}</bdi>` : html`<bdi>${text}</bdi>`;
}

function badge(text: string, kind: '' | 'paid' | 'untrusted'): Html {
  return html`<span class="status badge ${kind}">${text}</span>`;
}
