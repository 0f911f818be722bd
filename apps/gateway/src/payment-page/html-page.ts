import { html, raw } from 'hono/html';
import { directionOf } from './localization.ts';

/** A piece of HTML. Only this template tag of hono is used: it escapes every value that is not itself such a piece. */
export type Html = ReturnType<typeof html>;

interface PageParts {
  readonly language: string;
  readonly title: string;
  /** The only style sheet. The Content-Security-Policy allows no other. */
  readonly style: string;
  readonly head?: Html | '';
  readonly body: Html;
}

export async function htmlPage({ language, title, style, head = '', body }: PageParts): Promise<string> {
  const page = await html`<!doctype html>
<html lang="${language}" dir="${directionOf(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="format-detection" content="telephone=no">
${head}
<title>${title}</title>
<style>${raw(style)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
  return page.toString();
}

/** Code or data in lines. It scrolls horizontally, so it must be reachable by keyboard. */
export function codeBlock(text: string): Html {
  return html`<pre tabindex="0">${text}</pre>`;
}
