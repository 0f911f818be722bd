import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BaseUrl } from '@order-gateway/domain/links';
import type { Html } from '@order-gateway/pages/html-page';
import type { SecretsKeys } from '@order-gateway/runtime/encryption';
import { isLoopbackUrl } from '@order-gateway/runtime/ip-address';
import type { Logger } from '@order-gateway/runtime/logger';
import { messageOf } from '@order-gateway/runtime/process';
import { html } from 'hono/html';
import type { AdminRoutes } from '../../../http/admin-server.ts';
import { isEmbeddedElsewhere, isFromAnotherSite } from '../../../http/requests.ts';
import { consoleHeaders, consolePage, pageWithoutHeader } from '../layout.ts';
import { signInPage } from '../sign-in-pages.ts';
import { createOperatorAccess, operatorPath } from './operator-access.ts';
import { operatorPages, unreadable } from './operator-pages.ts';
import { type OperatorReadsDeps, openOperatorReads } from './operator-reads.ts';

interface OperatorViewDeps extends OperatorReadsDeps {
  readonly secretsKeys: SecretsKeys;
  readonly logger: Logger;
}

interface PageResponse {
  readonly status: number;
  readonly page?: Promise<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Opens the operators' view: pages on the admin port that change nothing. */
export function openOperatorView({ secretsKeys, logger, ...deps }: OperatorViewDeps): AdminRoutes {
  const reads = openOperatorReads(deps);
  const access = createOperatorAccess(secretsKeys);

  const respond = async ({ method, headers, socket, url: path = '' }: IncomingMessage): Promise<PageResponse> => {
    const host = URL.parse(`http://${headers.host}`);
    // After DNS rebinding, a browser sends the name of the other site. Operators use localhost, even through a tunnel.
    if (host === null || !isLoopbackUrl(host))
      return errorPage(421, 'Open the link exactly as the command prints it, at localhost.');
    if (method !== 'GET' && method !== 'POST') return errorPage(405, 'These pages accept GET and POST.');
    const isForeign =
      method === 'POST' ? isFromAnotherSite(headers, host.origin as BaseUrl) : isEmbeddedElsewhere(headers);
    if (isForeign) return errorPage(403, 'This request comes from another site.');
    const { pathname = '', searchParams = new URLSearchParams() } = URL.parse(path, host) ?? {};
    const [, link] = /^\/operator\/sign-in\/([^/]+)$/.exec(pathname) ?? [];
    if (link !== undefined && method === 'GET') return { status: 200, page: signInPage('en') };
    if (link !== undefined) {
      const cookie = access.signIn(link);
      if (cookie === undefined) return errorPage(410, 'This link has already been used, or has expired.');
      logger.info({ remote_address: socket.remoteAddress }, 'operator signed in');
      return redirect(cookie);
    }
    if (!access.isSignedIn(headers.cookie)) return errorPage(401, 'You are not signed in.');
    if (method === 'POST') return redirect(access.signOut(headers.cookie));
    const page = operatorPages.find((candidate) => `${operatorPath}${candidate.path}` === pathname);
    if (page === undefined) return errorPage(404, 'There is no such page.');
    const read = await page.content(reads, searchParams).then(
      (content) => ({ status: 200, content }),
      (error) => ({ status: 503, content: unreadable(new Error(messageOf(error))) }),
    );
    return {
      status: read.status,
      page: consolePage({ language: 'en', title: page.title, header: headerOf(page.path), content: read.content }),
    };
  };

  return {
    path: operatorPath,
    async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const { status, page, headers } = await respond(request);
      const body = (await page) ?? '';
      response
        .writeHead(status, { ...consoleHeaders, 'content-type': 'text/html; charset=utf-8', ...headers })
        .end(body);
    },
    close: reads.close,
  };
}

function redirect(cookie: string): PageResponse {
  return { status: 303, headers: { location: operatorPath, 'set-cookie': cookie } };
}

function errorPage(status: number, title: string): PageResponse {
  return {
    status,
    page: pageWithoutHeader('en', title, html`<p>To get a new link, run <code>operator console</code>.</p>`),
  };
}

function headerOf(current: string): Html {
  const links = operatorPages.map(({ path, title }) => {
    const isCurrent = path === current ? html` aria-current="page"` : '';
    return html`<a href="${operatorPath}${path}"${isCurrent}>${title}</a>`;
  });
  return html`<a class="skip" href="#content">Skip to the content</a>
<header><div class="bar">
<span class="shop">Operator</span>
<form method="post" action="${operatorPath}"><button class="button plain">Sign out</button></form>
<nav aria-label="Operator">${links}</nav>
</div></header>`;
}
