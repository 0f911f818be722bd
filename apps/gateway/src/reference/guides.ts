import { readFile } from 'node:fs/promises';
import { type FailureCode, failureAdvice, failures } from '@order-gateway/domain/failure';
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

/** The line of a guide that stands for the list of error codes, which has one source. */
const errorListLine = /^\[[^\]]+\]\(\.\.\/packages\/domain\/src\/failure\.ts\)$/m;

/** Every error code in Markdown, with an anchor to which the `type` of a problem document leads. */
function errorList(): string {
  const items = Object.entries(failures).map(([code, { httpStatus, grpcStatus }]) => {
    const statuses = grpcStatus === null ? httpStatus : `${httpStatus}, ${grpcStatus}`;
    return `- <a id="${code}"></a>\`${code}\` (${statuses}): ${failureAdvice(code as FailureCode, false)}`;
  });
  return items.join('\n');
}

/** A guide as a page without scripts, made from its Markdown. */
export async function guidePage(name: Guide, baseUrl: string): Promise<string> {
  const markdown = await readFile(new URL(`${name}.md`, docs), 'utf8');
  const body = html`<nav aria-label="Documentation"><details><summary>Documentation</summary>${contents(baseUrl)}</details></nav>
${raw(await markdownTo(baseUrl).parse(markdown.replace(errorListLine, errorList)))}`;
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
  // The reference is made from the contract.
  if (href.endsWith('.proto')) return `${baseUrl}/docs`;
  const [, name = '', hash = ''] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? [];
  return isGuide(name) ? `${baseUrl}/docs/${name}${hash}` : undefined;
}
