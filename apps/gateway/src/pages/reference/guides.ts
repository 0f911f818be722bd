import { readFile } from 'node:fs/promises';
import { errorCatalogue, failureAdvice } from '@order-gateway/contract/errors';
import type { FailureCode } from '@order-gateway/domain/failure';
import { codeBlock, type Html, htmlPage } from '@order-gateway/pages/html-page';
import { guideStyle, siteStyle } from '@order-gateway/pages/styles';
import { html, raw } from 'hono/html';
import { Marked, Renderer } from 'marked';
import { gfmHeadingId } from 'marked-gfm-heading-id';

const root = new URL('../../../../../', import.meta.url);

/** The folder of the example programs. */
export const examples = new URL('docs/examples/', root);

/**
 * The documents for merchants, by the last part of their path: file, title and summary. The pages for operators and
 * checkout systems are not served.
 */
export const guides = {
  'creating-orders': ['docs/creating-orders.md', 'Orders', 'Fields, amounts, retries, lookup and lists'],
  'go-live': ['docs/go-live.md', 'Going live', 'From test orders to your first real order'],
  'order-states': ['docs/order-states.md', 'Order states', 'Payment, cancellation and expiry'],
  refunds: ['docs/refunds.md', 'Refunds and disputes', 'Refund payments, and follow disputes'],
  events: ['docs/events.md', 'Events and webhooks', 'Learn what happens to your orders'],
  'payment-page': ['docs/payment-page.md', 'The payment page', 'What the customer sees, and the return to the shop'],
  checksum: ['docs/checksum.md', 'The order checksum', 'Prove that an order is yours and unchanged'],
  errors: ['docs/errors.md', 'Errors', 'Every code and what to do about it'],
  'node-sdk': ['packages/client/README.md', 'Node.js SDK', 'Orders, webhooks and returns in a few lines'],
  examples: ['docs/examples/README.md', 'Examples', 'Programs in several languages'],
} as const;

export type Guide = keyof typeof guides;

/** The machine-readable forms of the contract, by path. */
const contracts = {
  '/openapi.json': ['OpenAPI document', 'The JSON API, for tools'],
  '/docs/proto.tar': ['gRPC contract', 'The .proto files as a tar archive'],
} as const;

/** Renders links to all guides, and to the documents for tools. */
export function contents(baseUrl: string): Html {
  const card = (path: string, [title, text]: readonly [string, string]) =>
    html`<li><a href="${baseUrl}${path}">${title}</a><p>${text}</p></li>`;
  return html`<ul class="cards">
${Object.entries(guides).map(([name, [, ...texts]]) => card(`/docs/${name}`, texts))}
${Object.entries(contracts).map(([path, texts]) => card(path, texts))}
</ul>`;
}

/** Renders the bar above a page of the documentation. `current` is the page's path below the base URL. */
export function siteBar(baseUrl: string, current: string): Html {
  const link = (path: string, text: string) => {
    const isCurrent = path === current ? html` aria-current="page"` : '';
    return html`<a href="${baseUrl}${path}"${isCurrent}>${text}</a>`;
  };
  return html`<nav class="site" aria-label="Documentation"><a class="home" href="${baseUrl}/"><span class="mark" aria-hidden="true">O</span> Order gateway</a>
<div>${link('/docs', 'API')}${link('/', 'Guides')}${link('/docs/errors', 'Errors')}${link('/openapi.json', 'OpenAPI')}</div></nav>`;
}

/** Matches the line of `errors.md` that the list of error codes replaces. The catalogue is the source of that list. */
const errorListLine = /^\[[^\]]+\]\(\.\.\/packages\/contract\/src\/errors\.ts\)$/m;

/** Lists every error code in Markdown, with the anchor to which the `type` of a problem document links. */
function errorList(): string {
  const items = Object.entries(errorCatalogue).map(([code, { httpStatus, grpcStatus }]) => {
    const statuses = grpcStatus === null ? httpStatus : `${httpStatus}, ${grpcStatus}`;
    return `- <a id="${code}"></a>\`${code}\` (${statuses}): ${failureAdvice(code as FailureCode, false)}`;
  });
  return items.join('\n');
}

/** Renders the Markdown of a guide as a page without scripts. */
export async function guidePage(name: Guide, baseUrl: string): Promise<string> {
  const [path, title] = guides[name];
  const file = new URL(path, root);
  const markdown = await readFile(file, 'utf8');
  const body = html`${raw(await markdownTo(baseUrl, file).parse(markdown.replace(errorListLine, errorList)))}`;
  const header = siteBar(baseUrl, `/docs/${name}`);
  return htmlPage({ language: 'en', title: `${title} | Order gateway`, styles: [siteStyle, guideStyle], header, body });
}

function markdownTo(baseUrl: string, file: URL): Marked {
  return new Marked(gfmHeadingId(), {
    renderer: {
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = servedLink(href, file, baseUrl);
        return target === undefined ? text : html`<a href="${target}">${raw(text)}</a>`.toString();
      },
      // A diagram needs a script, and the text beside it says the same.
      code: ({ text, lang }) => (lang === 'mermaid' ? '' : codeBlock(text).toString()),
      // On a phone, a wide table scrolls in its own box, which the keyboard can reach.
      table(token) {
        return html`<div class="table" tabindex="0">${raw(Renderer.prototype.table.call(this, token))}</div>`.toString();
      },
      image: ({ text }) => html`<em>${text}</em>`.toString(),
    },
  });
}

/**
 * Returns the target of a link in the guide of a file: an external link or an anchor as it is, the address on this
 * server of a file that is served, and `undefined` for any other file.
 */
function servedLink(href: string, guide: URL, baseUrl: string): string | undefined {
  if (/^(https?:|#)/.test(href)) return href;
  // The API reference shows what the .proto files contain.
  if (href.endsWith('.proto')) return `${baseUrl}/docs`;
  const { hash, pathname } = new URL(href, guide);
  const path = pathname.slice(root.pathname.length);
  const [name] = Object.entries(guides).find(([, [file]]) => file === path) ?? [];
  if (name !== undefined) return `${baseUrl}/docs/${name}${hash}`;
  return path.startsWith('docs/examples/') ? `${baseUrl}/${path}` : undefined;
}
