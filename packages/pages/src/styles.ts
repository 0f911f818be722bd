import { hash } from 'node:crypto';
import { cardColors, defaultColor } from './brand-style.ts';

interface Allowed {
  /** The results of {@link hashSource} for the style sheets and the script. */
  readonly styles: readonly string[];
  readonly script?: string;
  /** Where forms may be sent. If absent, the page cannot send forms. */
  readonly formAction?: string | undefined;
  /** The origin of images that the page loads from another site. */
  readonly imageOrigin?: string | undefined;
}

/**
 * Returns the Content-Security-Policy of a page. It allows the page's styles and script by their hashes. A page with a
 * script can also load images and fetch data from its own site.
 */
export function contentSecurityPolicy({ styles, script, formAction = "'none'", imageOrigin }: Allowed): string {
  const scriptSources = script === undefined ? '' : `script-src ${script}; connect-src 'self'; `;
  const hasImages = script !== undefined || imageOrigin !== undefined;
  const imageSources = hasImages ? `img-src 'self' data:${imageOrigin === undefined ? '' : ` ${imageOrigin}`}; ` : '';
  return `default-src 'none'; style-src ${styles.join(' ')}; ${scriptSources}${imageSources}base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`;
}

/**
 * The headers of a page that only some people may see, such as those who have its address. Therefore, browsers don't
 * send the address to other sites (Referrer-Policy), and the page may not be cached, indexed or framed by another site.
 */
export const privatePageHeaders = {
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex, nofollow',
};

/** Returns the source expression that allows an inline style or script in a policy. */
export function hashSource(text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`;
}

/** The style sheet that the payment page and the console share: colours, type, badges and buttons. */
export const sharedStyle = `
:root {
  color-scheme: light dark;
  --ground: #f2f3f6; --card: ${cardColors.light}; --ink: #171a21; --soft: #545b69; --line: #d8dce4;
  --accent: ${defaultColor}; --on-accent: #ffffff; --link: ${defaultColor}; --badge: #e6e9ef; --on-badge: #3d4452;
  --warn: #fdf0cc; --on-warn: #614200; --good: #d6f2dd; --on-good: #12512a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1014; --card: ${cardColors.dark}; --ink: #f2f4f8; --soft: #aab2c0; --line: #353b48;
    --accent: #93b8ff; --on-accent: #0a1a36; --link: #93b8ff; --badge: #2d323d; --on-badge: #cfd5e0;
    --warn: #3b3010; --on-warn: #ffdf94; --good: #133a21; --on-good: #a4e8b9;
  }
}
* { box-sizing: border-box; margin: 0; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; text-size-adjust: 100%; -webkit-text-size-adjust: 100%; }
main, bdi { overflow-wrap: anywhere; }
h1 { font-size: 1.375rem; line-height: 1.3; font-weight: 650; overflow: clip; text-wrap: balance; }
p { text-wrap: pretty; }
.label, dt { color: var(--soft); font-size: 0.875rem; font-weight: 400; }
.status { background: var(--badge); color: var(--on-badge); border-radius: 1rem; padding: 0.125rem 0.75rem; font-size: 0.875rem; font-weight: 600; }
.test { background: var(--warn); color: var(--on-warn); }
.status.paid { background: var(--good); color: var(--on-good); }
.status.untrusted { background: var(--warn); color: var(--on-warn); }
.test, .notice { text-align: center; font-weight: 600; border-radius: 0.625rem; padding: 0.5rem 1rem; }
.notice { background: var(--badge); color: var(--on-badge); }
dl { display: grid; gap: 1rem; }
dd { overflow: clip; }
summary { cursor: pointer; }
.button { display: block; inline-size: 100%; font: inherit; background: none; cursor: pointer; text-align: center; text-decoration: none; font-weight: 650; border-radius: 0.625rem; padding: 0.8125rem 1rem; border: 2px solid var(--link); color: var(--link); }
.button.main { background: var(--accent); color: var(--on-accent); }
.button:hover { text-decoration: underline; }
[hidden] { display: none; }
a:focus-visible, button:focus-visible, summary:focus-visible, input:focus-visible, select:focus-visible, textarea:focus-visible { outline: 3px solid var(--link); outline-offset: 3px; border-radius: 0.625rem; }
`;

/** The style sheet of the pages that customers see. */
export const paymentPageStyle = `${sharedStyle}
body { background: var(--ground); color: var(--ink); min-height: 100vh; min-height: 100svh; display: grid; align-items: center; padding: 1rem; }
main {
  background: var(--card); border: 1px solid var(--line); border-radius: 1rem; inline-size: 100%; max-inline-size: 30rem;
  margin: auto; padding: clamp(1.25rem, 6vw, 2.25rem); display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.25rem;
}
time:not([data-date]) { white-space: nowrap; }
header { display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: center; }
header div { flex: 1 1 8rem; }
.logo { flex: none; block-size: 2.75rem; inline-size: auto; max-inline-size: 9rem; object-fit: contain; }
@media (prefers-color-scheme: dark) { .logo { background: #fff; border-radius: 0.5rem; padding: 0.25rem; } }
.monogram { flex: none; inline-size: 2.75rem; block-size: 2.75rem; display: grid; place-items: center; overflow: clip; border-radius: 0.75rem; background: var(--accent); color: var(--on-accent); font-size: 1.375rem; font-weight: 700; }
.order { display: grid; gap: 0.5rem; justify-items: start; }
.order > * { max-inline-size: 100%; }
.amount { font-size: clamp(2rem, 10vw, 2.75rem); line-height: 1.15; font-weight: 700; font-variant-numeric: tabular-nums; }
.amount.long { font-size: clamp(1.375rem, 7vw, 2rem); }
.code { color: var(--soft); font-size: 1rem; font-weight: 400; white-space: nowrap; }
.owed { background: var(--warn); color: var(--on-warn); border-radius: 0.625rem; padding: 0.75rem 1rem; }
.block { border-block-start: 1px solid var(--line); padding-block-start: 1.25rem; }
.note { white-space: pre-wrap; overflow: clip; }
.more, .back, dd a, .legal a { color: var(--link); text-decoration: underline; }
[open] .beginning { display: none; }
.actions { display: grid; gap: 0.75rem; }
.scan { display: none; }
@media (min-width: 48rem) {
  .scan { display: flex; gap: 1.25rem; align-items: center; }
  .qr { flex: none; inline-size: 9rem; block-size: 9rem; border-radius: 0.5rem; }
}
/* A typical page with a code fits on a laptop's screen that is 800 pixels high. */
@media (min-width: 48rem) and (max-height: 56rem) {
  body { padding-block: 0.5rem; }
  main { gap: 1rem; padding-block: 1.25rem; }
  .block { padding-block-start: 1rem; }
  .button { padding-block: 0.6875rem; }
  dl div { display: flex; flex-wrap: wrap; gap: 0 0.5rem; align-items: baseline; }
  .qr { inline-size: 7.5rem; block-size: 7.5rem; }
}
.languages { font-size: 0.875rem; }
.languages ul { list-style: none; padding: 0.5rem 0 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); }
.languages a { display: block; padding: 0.5rem 0; color: var(--link); }
[aria-current] { font-weight: 700; }
.legal, .links { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; }
.legal { font-size: 0.875rem; }
.copy { font: inherit; font-size: 0.875rem; color: var(--link); background: none; border: none; padding: 0.25rem 0; text-decoration: underline; cursor: pointer; }
main:focus { outline: none; }
.back { justify-self: center; text-align: center; padding: 0.25rem; }
@media print {
  :root {
    color-scheme: light;
    --ground: #fff; --card: #fff; --ink: #000; --soft: #000; --line: #000; --accent: #fff; --on-accent: #000; --link: #000; --badge: #fff; --on-badge: #000;
    --warn: #fff; --on-warn: #000; --good: #fff; --on-good: #000;
  }
  body { display: block; min-height: 0; }
  main { border: none; padding: 0; }
  .monogram, .status, .test, .owed { border: 1px solid; }
  .notice, .actions, .scan, .languages, .legal, .beginning, .more { display: none; }
  .logo { padding: 0; }
  .links a[href^="http"]::after { content: ": " attr(href); }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; }
  .note { white-space: normal; }
}
`;

/** The style sheet of the bar above the home page, the guides and the reference. */
export const siteStyle = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --ink: #171a21; --soft: #545b69; --line: #d8dce4; --panel: #f2f3f6; --accent: ${defaultColor}; --on-accent: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root { --ground: #0e1014; --ink: #f2f4f8; --soft: #aab2c0; --line: #353b48; --panel: #191c23; --accent: #93b8ff; --on-accent: #0a1a36; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); }
.site {
  position: sticky; top: 0; z-index: 10; display: flex; align-items: center; justify-content: space-between; gap: 0.75rem;
  block-size: 3.5rem; padding: 0 max(1rem, (100vw - 64rem) / 2); background: var(--ground); border-block-end: 1px solid var(--line);
  font: 0.9375rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
.site a { color: var(--soft); text-decoration: none; padding-block: 0.375rem; }
.site a:hover, .site [aria-current] { color: var(--ink); text-decoration: underline; text-underline-offset: 0.3em; }
.site .home { display: flex; align-items: center; gap: 0.625rem; color: var(--ink); font-weight: 650; text-decoration: none; white-space: nowrap; }
.site div { display: flex; gap: clamp(0.75rem, 3vw, 1.5rem); }
.mark { display: grid; place-items: center; inline-size: 1.75rem; block-size: 1.75rem; border-radius: 0.5rem; background: var(--accent); color: var(--on-accent); font-weight: 700; }
ul.cards { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr)); gap: 1rem; }
.cards li { position: relative; border: 1px solid var(--line); border-radius: 0.75rem; padding: 1rem 1.125rem; }
.cards li:hover { border-color: var(--accent); }
.cards li a { color: var(--ink); font-weight: 650; text-decoration: none; }
.cards a::after { content: ""; position: absolute; inset: 0; border-radius: 0.75rem; }
.cards li a:hover { color: var(--accent); text-decoration: underline; }
.cards p { margin: 0.25rem 0 0; color: var(--soft); font-size: 0.9375rem; }
a:focus-visible, pre:focus-visible, .table:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 0.25rem; }
.cards a:focus-visible { outline: none; }
.cards a:focus-visible::after { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (max-width: 30rem) { .site .home { font-size: 0; gap: 0; } .mark { font-size: 0.9375rem; } }
@media print { .site { display: none; } }
`;

/** The style sheet of the home page and the guides. It follows {@link siteStyle}. */
export const guideStyle = `
html { font: 100%/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; scroll-padding-top: 4.5rem; }
main { max-width: 52rem; margin: auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
main:has(.hero) { max-width: 66rem; }
h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
h2 { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1rem; }
.hero { padding-block: clamp(1.5rem, 7vw, 4rem) clamp(1rem, 4vw, 2.5rem); }
.hero h1 { font-size: clamp(2rem, 7vw, 3rem); margin: 0 0 1rem; }
.hero p { max-width: 38rem; margin: 0 0 1.5rem; color: var(--soft); font-size: 1.125rem; }
.links { display: flex; flex-wrap: wrap; gap: 0.75rem; }
.links a { border: 2px solid var(--accent); border-radius: 0.625rem; padding: 0.625rem 1.125rem; font-weight: 650; text-decoration: none; }
.links a:first-child { background: var(--accent); color: var(--on-accent); }
.links a:hover { text-decoration: underline; }
.hint { color: var(--soft); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9em; }
code { background: var(--panel); border-radius: 0.25rem; padding: 0.1em 0.3em; }
pre { background: var(--panel); border-radius: 0.5rem; padding: 1rem; overflow-x: auto; }
main a { color: var(--accent); }
:target { outline: 2px solid var(--accent); outline-offset: 4px; }
table { border-collapse: collapse; }
.table { overflow-x: auto; overflow-wrap: break-word; }
th, td { border-bottom: 1px solid var(--line); padding: 0.375rem 0.75rem 0.375rem 0; text-align: start; vertical-align: top; }
ul, ol { padding-inline-start: 1.25rem; }
`;
