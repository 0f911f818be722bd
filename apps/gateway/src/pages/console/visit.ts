import type { Readable } from 'node:stream';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import { errorCatalogue, failureDetail } from '@order-gateway/contract/errors';
import type { ConsoleSessionStore, FoundConsoleSession, FoundOutcome } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import type { ManagementCaller } from '@order-gateway/domain/management';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Html } from '@order-gateway/pages/html-page';
import type { Logger } from '@order-gateway/runtime/logger';
import { html } from 'hono/html';
import type { Call } from '../../calls/call.ts';
import type { Members } from '../../calls/operation.ts';
import { storageFailure } from '../../calls/store-failure.ts';
import type { HttpDeps } from '../../http/requests.ts';
import type { OperationDeps } from '../../operations/service.ts';
import type { SentForm } from './forms.ts';
import type { ConsoleLanguage, ConsoleTexts } from './layout.ts';

/** The parts of the gateway that the console uses. */
export interface VisitDeps extends HttpDeps, Pick<OperationDeps, 'store' | 'now' | 'randomBytes'> {
  readonly logger: Logger;
}

/** A request of a person who is signed in, with everything that a page needs. */
export interface Visit extends FoundConsoleSession, SentForm {
  readonly deps: VisitDeps;
  readonly call: Call;
  readonly sessions: ConsoleSessionStore;
  readonly sessionDigest: Uint8Array;
  /** The caller of operations. Its secret is the key of the checksum of an order that the console creates. */
  readonly signedIn: Required<ManagementCaller>;
  readonly language: ConsoleLanguage;
  readonly texts: ConsoleTexts;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Whether the person may change anything. */
  readonly mayManage: boolean;
  /** The hidden field that every form contains. */
  readonly formToken: Html;
  /** Returns the address of a page. `path` is the page's path below `/console`. */
  link(path: string): string;
  /**
   * Performs an operation of the API as the merchant. Resolves to the JSON form of its response. `timeoutMs` replaces
   * the deadline of the call: a streamed response can take longer than a call.
   */
  perform<Body>(method: DescMethodUnary, members: Members, timeoutMs?: number): Promise<Result<Body, Failure>>;
  /** Records an action in the audit log. Must succeed before the action is tried. */
  record(name: string, details: Readonly<Record<string, string>>): Promise<Result<true, Failure>>;
}

/** The response of a page. */
export type Response =
  | { readonly kind: 'page'; readonly title: string; readonly content: Html; readonly failure?: Failure | undefined }
  | { readonly kind: 'redirect'; readonly path: string; readonly endsSession?: true }
  | { readonly kind: 'file'; readonly name: string; readonly type: string; readonly content: Readable };

/** A page of the console, or the target of a form. */
export interface Page {
  readonly method: 'GET' | 'POST';
  /** The path below `/console`. */
  readonly path: string;
  /** Whether a person with the role `read` may open the page; absent: only a person with the role `manage`. */
  readonly isForAll?: true;
  /** The maximum size of a form with files; absent: the page receives no files. */
  readonly fileBytesMax?: number | undefined;
  respond(visit: Visit): Promise<Response>;
}

export function page(title: string, content: Html, failure?: Failure): Response {
  return { kind: 'page', title, content, failure };
}

export function redirect(path: string): Response {
  return { kind: 'redirect', path };
}

/** Returns the page of a failure that no field of a form explains. */
export function failurePage(
  { texts, link }: Visit,
  failure: Failure,
  title = texts.failureTitle,
  text: Html | string = failureText(failure),
): Response {
  const content = html`<p role="alert">${text}</p>
<p><a href="${link('/orders')}">${texts.orders}</a></p>`;
  return page(title, content, failure);
}

export function failureText(failure: Failure): Html {
  return html`<bdi>${errorCatalogue[failure.kind].title}: ${failureDetail(failure)}</bdi>`;
}

/**
 * Converts an outcome of the session store to a result, which is `unauthenticated` if the session or link does not
 * exist, has ended, or does not have the required role.
 */
export function storedResult<Found>(outcome: FoundOutcome<Found>): Result<Found, Failure> {
  if (outcome.kind !== 'done') return failed(storageFailure(outcome.kind));
  return outcome.value === undefined ? failed({ kind: 'unauthenticated' }) : success(outcome.value);
}
