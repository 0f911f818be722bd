import { sharedStyle } from '@order-gateway/pages/styles';

/** The style sheet of the console. */
export const consoleStyle = `${sharedStyle}
body { background: var(--ground); color: var(--ink); min-height: 100vh; }
a { color: var(--link); }
header { background: var(--card); border-block-end: 1px solid var(--line); }
.bar { padding: 0.75rem max(1rem, (100vw - 62rem) / 2); }
.bar, nav, .row, .actions { display: flex; flex-wrap: wrap; gap: 0.5rem 1.25rem; align-items: center; }
header form { margin-inline-start: auto; }
header nav { flex: 1 0 100%; }
header a { padding-block: 0.375rem; text-decoration: none; }
header a:hover { text-decoration: underline; }
.shop { font-weight: 650; overflow-wrap: anywhere; max-inline-size: 100%; }
[aria-current] { font-weight: 700; color: var(--ink); text-decoration: underline; text-underline-offset: 0.3em; }
.skip { position: absolute; inset-inline-start: -100vw; }
.skip:focus { inset-inline-start: 1rem; background: var(--card); padding: 0.5rem; z-index: 1; }
.test { border-radius: 0; }
main { max-inline-size: 64rem; margin: auto; padding: 1.5rem 1rem 4rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.25rem; }
main.narrow { max-inline-size: 32rem; margin-block-start: 8vh; }
main.narrow, .card { background: var(--card); border: 1px solid var(--line); border-radius: 1rem; padding: clamp(1rem, 4vw, 1.75rem); }
.card, .card-form { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; }
details.card { display: block; }
details[open] > summary { margin-block-end: 1rem; }
h2 { font-size: 1.0625rem; font-weight: 650; }
.soft { color: var(--soft); font-size: 0.9375rem; }
.button { display: inline-block; inline-size: auto; padding: 0.5rem 1rem; }
.button.plain { border-color: transparent; padding-inline: 0.25rem; text-decoration: underline; }
.button.danger { border-color: var(--bad); color: var(--bad); }
label { display: grid; gap: 0.25rem; font-size: 0.9375rem; }
input, select, textarea { font: inherit; inline-size: 100%; min-inline-size: 0; padding: 0.5rem 0.625rem; border: 1px solid var(--soft); border-radius: 0.5rem; background: var(--card); color: var(--ink); }
fieldset { border: none; padding: 0; min-inline-size: 0; display: grid; gap: 0.5rem; }
legend { padding: 0; font-size: 0.9375rem; margin-block-end: 0.5rem; }
/* Each value has the direction of its own text: an address runs from left to right on every page. */
input:not([type="file"], [type^="date"]), textarea { unicode-bidi: plaintext; }
.box { display: flex; gap: 0.5rem; align-items: center; }
.box input { inline-size: auto; }
[aria-invalid="true"] { border: 2px solid var(--bad); }
.error { color: var(--bad); font-size: 0.9375rem; }
:root { --bad: #a3151f; --paid: #1a7f37; --open: #7d8799; --expired: #b26b00; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9c9c; --paid: #4cc776; --open: #8d97a8; --expired: #e5ad4e; } }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 1rem; align-items: start; }
.fields > .wide { grid-column: 1 / -1; }
.search { display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: end; }
.search label { flex: 1 1 16rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; inline-size: 100%; font-variant-numeric: tabular-nums; }
th { text-align: start; color: var(--soft); font-weight: 400; font-size: 0.875rem; }
/* A word that can be broken anywhere does not widen its column, so only IDs can be broken anywhere. */
th, td { border-block-end: 1px solid var(--line); padding-block: 0.625rem; padding-inline: 0 1rem; vertical-align: top; overflow-wrap: break-word; }
td .button { padding: 0; border: none; white-space: nowrap; font-weight: 400; }
.number { text-align: end; white-space: nowrap; }
td time, .badge { white-space: nowrap; }
@media (min-width: 64rem) { .id { white-space: nowrap; } }
/* An ID can be broken anywhere, so without a minimum its column could be as narrow as a character. */
.long-id { min-inline-size: 14rem; }
.fields-of { gap: 0.25rem; grid-template-columns: minmax(0, 1fr); }
.fields-of div { display: flex; flex-wrap: wrap; gap: 0 0.5rem; align-items: baseline; }
dl { grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); }
.amount { font-size: 1.75rem; line-height: 1.2; font-weight: 700; font-variant-numeric: tabular-nums; }
ol.timeline { list-style: none; padding: 0; display: grid; gap: 0.75rem; }
.timeline li { border-inline-start: 3px solid var(--line); padding-inline-start: 0.75rem; }
.timeline time { display: block; color: var(--soft); font-size: 0.875rem; }
.legend { display: flex; flex-wrap: wrap; gap: 1rem 2rem; }
.legend dd { font-size: 1.25rem; font-weight: 650; overflow-wrap: anywhere; }
.legend [class] dt::before { content: ""; display: inline-block; inline-size: 0.75rem; block-size: 0.75rem; border-radius: 0.125rem; background: var(--series); margin-inline-end: 0.375rem; }
.paid { --series: var(--paid); } .open { --series: var(--open); } .expired { --series: var(--expired); } .refused { --series: var(--bad); }
.chart svg { display: block; inline-size: 100%; block-size: 10rem; margin-block: 0.25rem; }
.chart rect { fill: var(--series); stroke: var(--card); vector-effect: non-scaling-stroke; }
/* The days run in the direction of the text, as their labels do. */
[dir="rtl"] .chart svg { transform: scaleX(-1); }
.chart path { stroke: var(--soft); vector-effect: non-scaling-stroke; }
.axis { display: flex; justify-content: space-between; }
.note { white-space: pre-wrap; }
.qr { inline-size: 10rem; border-radius: 0.5rem; overflow: hidden; }
.qr svg { display: block; }
@media (max-width: 40rem) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { border-block-end: 1px solid var(--line); padding-block: 0.625rem; }
  td { border: none; padding-block: 0.125rem; padding-inline: 0; }
  .number { text-align: start; }
  .number, td time { white-space: normal; }
  [data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
}
@media print { header, form, .actions { display: none; } }
`;
