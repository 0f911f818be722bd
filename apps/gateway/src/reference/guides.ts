import { readFile } from 'node:fs/promises';
import { html, raw } from 'hono/html';
import { Marked } from 'marked';
import { gfmHeadingId } from 'marked-gfm-heading-id';
import { codeBlock, type Html, htmlPage } from '../payment-page/html-page.ts';
import { guideStyle } from '../payment-page/styles.ts';

const docs = new URL('../../../../docs/', import.meta.url);

/** The pages of `docs` for merchants, by file name. Those for operators are not served. */
export const guides = {
  'creating-orders': 'Orders: fields, amounts, retries, lookup and lists',
  'go-live': 'Going live, without an operator',
  'order-states': 'Order states: payment, cancellation and expiry',
  events: 'Events and webhooks',
  'payment-page': 'The payment page and the return to the shop',
  checksum: 'The order checksum',
  errors: 'Errors: every code and what to do about it',
} as const;

export type Guide = keyof typeof guides;

const isGuide = (name: string): name is Guide => Object.hasOwn(guides, name);

/** Links to the reference, to all guides, and to the documents for tools. */
export function contents(baseUrl: string): Html {
  return html`<ul>
<li><a href="${baseUrl}/docs">API reference</a></li>
${Object.entries(guides).map(([name, title]) => html`<li><a href="${baseUrl}/docs/${name}">${title}</a></li>`)}
<li><a href="${baseUrl}/openapi.json">OpenAPI document</a>, for tools</li>
<li><a href="${baseUrl}/docs/proto.tar">gRPC contract</a>, the folder <code>proto</code> as an archive</li>
</ul>`;
}

/** A guide as a page without scripts, made from its Markdown. */
export async function guidePage(name: Guide, baseUrl: string): Promise<string> {
  const markdown = await readFile(new URL(`${name}.md`, docs), 'utf8');
  const body = html`<nav aria-label="Documentation"><details><summary>Documentation</summary>${contents(baseUrl)}</details></nav>
${raw(await markdownTo(baseUrl).parse(markdown))}`;
  return htmlPage({ language: 'en', title: `${guides[name]} | Order gateway`, styles: [guideStyle], body });
}

function markdownTo(baseUrl: string): Marked {
  return new Marked(gfmHeadingId(), {
    renderer: {
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = servedLink(href, baseUrl);
        return target === undefined ? text : html`<a href="${target}">${raw(text)}</a>`.toString();
      },
      code: ({ text }) => codeBlock(text).toString(),
      image: ({ text }) => html`<em>${text}</em>`.toString(),
    },
  });
}

/** The address of a repository link on this server; `undefined` if the file is not served. */
function servedLink(href: string, baseUrl: string): string | undefined {
  if (/^(https?:|#)/.test(href)) return href;
  const [, name = '', hash = ''] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? [];
  return isGuide(name) ? `${baseUrl}/docs/${name}${hash}` : undefined;
}
