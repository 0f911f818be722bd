import { html, raw } from 'hono/html';
import { directionOf } from './localization.ts';

/**
 * A piece of HTML. All HTML is written with hono's template tag `html`, which escapes every value that is not itself a
 * piece of HTML.
 */
export type Html = ReturnType<typeof html>;

interface PageParts {
  readonly language: string;
  readonly title: string;
  /** The style sheets. The Content-Security-Policy allows only these. */
  readonly styles: readonly string[];
  readonly script?: string;
  readonly head?: Html | '';
  /** The content before the element `main`. */
  readonly header?: Html | '';
  /** The attributes of the element `main`. */
  readonly attributes?: Html | '';
  readonly body: Html;
}

/** Returns a complete HTML document. */
export async function htmlPage({
  language,
  title,
  styles,
  script,
  head = '',
  header = '',
  attributes = '',
  body,
}: PageParts): Promise<string> {
  const page = await html`<!doctype html>
<html lang="${language}" dir="${directionOf(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="format-detection" content="telephone=no">
${head}
<title>${title}</title>
${styles.map((style) => html`<style>${raw(style)}</style>`)}
</head>
<body>
${header}
<main${attributes}>
${body}
</main>
${script === undefined ? '' : html`<script type="module">${raw(script)}</script>`}
</body>
</html>
`;
  return page.toString();
}

/** Renders a text with its placeholders replaced by values. All languages have the placeholders in the same order. */
export function withValue(text: string, ...values: readonly (string | Html)[]): Html {
  const [start, ...rest] = text.split(/\{[a-z]+\}/);
  return html`${start}${rest.map((part, index) => html`<bdi>${values[index]}</bdi>${part}`)}`;
}

/** Renders preformatted text. It scrolls horizontally, so users of a keyboard must be able to focus it. */
export function codeBlock(text: string): Html {
  return html`<pre tabindex="0">${text}</pre>`;
}
