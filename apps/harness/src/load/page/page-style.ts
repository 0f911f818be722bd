/** The style of the report's page, in light and dark. Colours are told apart by lightness too, not by hue alone. */
export const pageStyle = `
:root{color-scheme:light dark;--ground:#fff;--card:#f6f7f9;--ink:#1b1f27;--soft:#5c6573;--rule:#dfe3e8;--one:#8aa4c8;
--two:#1f5fbf;--bad:#c0392b;--good:#1d7a46}
@media(prefers-color-scheme:dark){:root{--ground:#14171c;--card:#1c2027;--ink:#e8eaee;--soft:#9aa4b2;--rule:#333a45;
--one:#5d7699;--two:#78b0ff;--bad:#ff8a7a;--good:#62d295}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1040px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:24px;margin:0 0 4px}
h2{font-size:16px;margin:36px 0 8px}
p{margin:0 0 8px;color:var(--soft)}
.verdict{font-weight:600}
.good{color:var(--good)}
.bad{color:var(--bad)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;margin:24px 0 0}
.facts div{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px}
.facts b{display:block;font-size:20px;font-weight:600;font-variant-numeric:tabular-nums}
.facts span{color:var(--soft);font-size:13px}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:12px;overflow-x:auto}
figcaption{color:var(--soft);font-size:13px;padding:0 4px 8px}
svg{display:block;width:100%;min-width:680px;height:auto}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}
.y{text-anchor:end}.x{text-anchor:middle}
.grid{stroke:var(--rule);fill:none}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.sent,.p50{stroke:var(--one);stroke-width:4}
.done,.p99{stroke:var(--two)}
.failed{stroke:var(--bad)}
.cell{fill:var(--two)}
.key{display:inline-block;width:14px;height:4px;border-radius:2px;margin:0 5px 3px 12px;vertical-align:middle}
.key.one{background:var(--one)}.key.two{background:var(--two)}.key.three{background:var(--bad)}
.wide{overflow-x:auto;white-space:nowrap}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 10px;border-bottom:1px solid var(--rule);font-weight:400}
th{color:var(--soft);font-size:13px}
td+td,th+th{text-align:right}
.settings td+td{text-align:left}
`;
