import type { ConsoleRole } from '@order-gateway/domain/accounts';
import { beforeAll, expect } from 'vitest';
import type { RunningGateway } from './running-gateway.ts';

type Shop = Pick<RunningGateway, 'url' | 'accounts' | 'credentials'>;

export interface PageResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Requests a page as a browser does, without following redirects. A form is sent as if from a page of the gateway. */
export async function request(
  url: string,
  { form, headers = {} }: { readonly form?: Record<string, string>; readonly headers?: Record<string, string> } = {},
): Promise<PageResponse> {
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { ...(form && { 'sec-fetch-site': 'same-origin' }), ...headers },
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Creates a one-time sign-in link for a person of a merchant. Returns it with the gateway's local address. */
export async function newSignInLink(
  { url, accounts, credentials }: Shop,
  { name = 'Ada', role = 'manage' }: { readonly name?: string; readonly role?: ConsoleRole } = {},
): Promise<string> {
  return `${url}/console/sign-in/${await accounts.createConsoleLink(credentials.clientId, { name, role })}`;
}

/** Signs a person in without a browser. Returns functions that make requests in the person's session. */
export async function signIn(shop: Shop, user?: Parameters<typeof newSignInLink>[1]) {
  const signedIn = await request(await newSignInLink(shop, user), { form: {} });
  expect(signedIn.status).toBe(303);
  const cookie = cookieOf(signedIn);
  const get = (path: string, headers: Record<string, string> = {}) =>
    request(`${shop.url}/console${path}`, { headers: { cookie, ...headers } });
  const formToken = tokenIn((await get('/sessions')).text);
  return {
    cookie,
    formToken,
    get,
    /** Sends a form of the console. */
    post: (path: string, form: Record<string, string> = {}, headers: Record<string, string> = {}) =>
      request(`${shop.url}/console${path}`, {
        form: { form_token: formToken, ...form },
        headers: { cookie, ...headers },
      }),
  };
}

type Visitor = Awaited<ReturnType<typeof signIn>>;

/**
 * Signs in a person who manages the gateway's merchant, a clerk who only reads, and a person of another merchant,
 * before the tests of the file.
 */
export function useVisitors(gateway: RunningGateway) {
  const [visitor, clerk, otherVisitor] = [{} as Visitor, {} as Visitor, {} as Visitor];
  beforeAll(async () => {
    Object.assign(visitor, await signIn(gateway));
    Object.assign(clerk, await signIn(gateway, { name: 'Bob', role: 'read' }));
    Object.assign(otherVisitor, await signIn(await gateway.newMerchant('Other Shop')));
  });
  return { visitor, clerk, otherVisitor };
}

/** Returns the name and value of the cookie that a response sets, as `name=value`. */
export function cookieOf({ headers }: PageResponse): string {
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** Returns the token that every form on a page contains. */
function tokenIn(html: string): string {
  return /name="form_token" value="([^"]+)"/.exec(html)?.[1] ?? '';
}

/** Returns the entries of a merchant's audit log for an action, oldest first. */
export async function auditLogOf(
  { accounts, credentials: { clientId } }: Pick<Shop, 'accounts' | 'credentials'>,
  action: string,
) {
  const entries = await accounts.log({ clientId, after: 0, limit: 500 });
  return entries.filter((entry) => entry.action === action).map(({ actor, details }) => ({ actor, details }));
}
