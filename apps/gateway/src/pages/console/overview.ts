import type { AmountHundredths } from '@order-gateway/domain/money';
import { countedOrdersMax, type DayCount } from '@order-gateway/domain/orders';
import type { Html } from '@order-gateway/pages/html-page';
import { localAmount } from '@order-gateway/pages/localization';
import { html } from 'hono/html';
import { storageFailure } from '../../calls/store-failure.ts';
import { filled, timeOf } from './layout.ts';
import { searchForm } from './orders.ts';
import { failurePage, type Page, page, type Response, type Visit } from './visit.ts';

const dayMs = 86_400_000;
const daysShown = 30;

/** The width of a day in the chart, and the height of the chart. A browser stretches both. */
const [dayWidth, height] = [10, 100];

/** The page that is shown after the sign-in. */
export const overviewPages: readonly Page[] = [
  { method: 'GET', path: '/overview', isForAll: true, respond: overviewPage },
];

/**
 * Shows the orders that were created today and on the 29 days before, in UTC. The store reads only the newest of them
 * (docs/decisions/075-the-overview-reads-the-store.md).
 */
async function overviewPage(visit: Visit): Promise<Response> {
  const { texts, language, deps, call, merchant, link } = visit;
  const sinceMs = (Math.floor(deps.now() / dayMs) + 1 - daysShown) * dayMs;
  const counted = await deps.store.countByDay(merchant.id, sinceMs, call.timeLeftMs());
  if (counted.kind !== 'found') return failurePage(visit, storageFailure(counted.kind));
  const { days, cutOffMs } = counted;
  const currencies = [...Map.groupBy(days, ({ currency }) => currency)].toSorted(
    ([, a], [, b]) => sumOf(b, 'created') - sumOf(a, 'created'),
  );
  const note =
    cutOffMs === undefined
      ? ''
      : html`<p class="notice">${filled(texts.cutOff, { count: countedOrdersMax.toLocaleString(language), time: timeOf(cutOffMs, language) })}</p>`;
  const content = html`${searchForm(visit)}
<p class="soft">${filled(days.length === 0 ? texts.noRecentOrders : texts.overviewText, { days: daysShown })}</p>
${note}
${currencies.map(
  ([
    currency,
    days,
  ]) => html`<section class="card" aria-label="${currency}"><h2><a href="${link(`/orders?currency=${currency}`)}">${currency}</a></h2>
<dl class="legend">${figuresOf(visit, days, currency).map(
    ([series, label, figure]) =>
      html`<div${series === '' ? '' : html` class="${series}"`}><dt>${label}</dt><dd>${
        series === 'refused' && sumOf(days, 'refusedPayments') > 0
          ? html`<a href="${link('/refused-payments')}">${figure}</a>`
          : figure
      }</dd></div>`,
  )}</dl>
${chartOf(visit, currency, days, sinceMs)}
<details><summary>${texts.byDay}</summary>${tableOf(visit, currency, days)}</details>
</section>`,
)}`;
  return page(texts.overview, content);
}

function sumOf(days: readonly DayCount[], name: 'created' | 'paid' | 'expired' | 'refusedPayments'): number {
  return days.reduce((sum, day) => sum + day[name], 0);
}

/** Returns the totals of some days. Each has its series in the chart (empty if it has none) and its label. */
function figuresOf({ texts, language }: Visit, days: readonly DayCount[], currency: string) {
  const [created, paid, expired] = [sumOf(days, 'created'), sumOf(days, 'paid'), sumOf(days, 'expired')];
  const amount = days.reduce((sum, { paidHundredths }) => sum + paidHundredths, 0n) as AmountHundredths;
  return [
    ['', texts.created, created.toLocaleString(language)],
    ['paid', texts.PAID, paid.toLocaleString(language)],
    ['', texts.paidAmount, localAmount(amount, currency, language)],
    ['open', texts.open, (created - paid - expired).toLocaleString(language)],
    ['expired', texts.EXPIRED, expired.toLocaleString(language)],
    ['refused', texts.refusedPayments, sumOf(days, 'refusedPayments').toLocaleString(language)],
  ] as const;
}

/** Renders one bar per day: the orders above the line, and their refused payments below it. */
function chartOf({ texts, language }: Visit, currency: string, days: readonly DayCount[], sinceMs: number): Html {
  const mostOrders = Math.max(...days.map(({ created }) => created));
  const unit = height / (mostOrders + Math.max(...days.map(({ refusedPayments }) => refusedPayments)));
  const line = mostOrders * unit;
  const bars = days.map((day) => {
    const x = ((day.dayMs - sinceMs) / dayMs) * dayWidth + 1;
    /** Renders a part of the bar that begins `from` orders above the line. Below the line, `from` is negative. */
    const part = (series: string, from: number, count: number) =>
      count === 0
        ? ''
        : html`<rect class="${series}" x="${x}" y="${line - (from + count) * unit}" width="${dayWidth - 2}" height="${count * unit}"/>`;
    const { created, paid, expired, refusedPayments } = day;
    const open = part('open', paid, created - paid - expired);
    return html`${part('paid', 0, paid)}${open}${part('expired', created - expired, expired)}${part('refused', -refusedPayments, refusedPayments)}`;
  });
  const [first, last] = [sinceMs, sinceMs + (daysShown - 1) * dayMs].map((ms) => dayOf(ms, language));
  return html`<div class="chart"><p class="soft">${filled(texts.mostOrders, { count: mostOrders.toLocaleString(language) })}</p>
<svg viewBox="0 0 ${daysShown * dayWidth} ${height}" preserveAspectRatio="none" role="img" aria-label="${texts.chart.replace('{currency}', currency)}">
${bars}<path d="M0 ${line}H${daysShown * dayWidth}"/></svg>
<p class="soft axis">${first} ${last}</p></div>`;
}

function tableOf(visit: Visit, currency: string, days: readonly DayCount[]): Html {
  const { texts, language } = visit;
  const rows = days
    .toSorted((a, b) => b.dayMs - a.dayMs)
    .map((day) => {
      const cells = figuresOf(visit, [day], currency).map(
        ([, label, figure]) => html`<td class="number" data-label="${label}">${figure}</td>`,
      );
      return html`<tr><td>${dayOf(day.dayMs, language)}</td>${cells}</tr>`;
    });
  const heads = figuresOf(visit, [], currency).map(([, label]) => html`<th class="number">${label}</th>`);
  return html`<div class="table"><table>
<thead><tr><th>${texts.day}</th>${heads}</tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

function dayOf(ms: number, language: string): Html {
  const [date] = new Date(ms).toISOString().split('T');
  const text = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeZone: 'UTC' }).format(ms);
  return html`<time datetime="${date}">${text}</time>`;
}
