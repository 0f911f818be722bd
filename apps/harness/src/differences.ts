import type { Answer, HttpAnswer, RpcAnswer } from './clients/client.ts';
import type { Expectation, HeaderExpectations } from './fixtures/fixture.ts';
import { expectedValue, isLink, type MatchContext, matches } from './matchers.ts';

/** One way in which an answer is not what was promised. */
export interface Difference {
  readonly what: string;
  readonly expected: string;
  readonly actual: string;
}

/** What the answer is held against besides the fixture. */
export interface DifferenceContext extends Pick<MatchContext, 'sent' | 'baseUrl' | 'nowMs'> {
  /** The answer to the fixture's first call at the same door; `undefined` while that one is judged. */
  readonly first: Answer | undefined;
  /** Texts that no answer may hold: the secrets of all merchants. */
  readonly secrets: readonly string[];
}

/** How the gateway names itself in google.rpc.ErrorInfo. */
const errorDomain = 'order-gateway';

/** A problem has no member beyond these, which could tell what no caller should learn. */
const problemMembers = [
  ...['type', 'title', 'status', 'detail', 'code', 'request_id'],
  ...['errors', 'fields', 'canonical_text'],
];

/**
 * Compares an answer with what the fixture expects and with what holds for every answer: it has a request id, a refusal has the
 * full form of its door, and nothing in it is secret. No difference means that the promise was kept.
 */
export function differences(expect: Expectation, answer: Answer, context: DifferenceContext): Difference[] {
  const found: Difference[] = [];
  const compare: Compare = (what, expected, actual) => {
    if (!Object.is(expected, actual)) found.push({ what, expected: shown(expected), actual: shown(actual) });
  };
  if (answer.kind === 'none') {
    compare('answer', 'an answer', `none: ${answer.cause}`);
    return found;
  }
  if (answer.kind === 'http') compareHttp(expect, answer, context.baseUrl, compare);
  else compareRpc(expect, answer, compare);
  compareBody(expect, answer, context, compare);
  const text = answer.text;
  for (const part of expect.untold) compare(`${part} in the answer`, false, text.includes(part));
  for (const secret of context.secrets) compare('a secret in the answer', false, text.includes(secret));
  if (expect.sameAsFirst && context.first !== undefined) compare('the answer', essence(context.first), essence(answer));
  return found;
}

type Compare = (what: string, expected: unknown, actual: unknown) => void;

function compareHttp(expect: Expectation, answer: HttpAnswer, baseUrl: string | undefined, compare: Compare): void {
  compare('status', expect.json?.status, answer.status);
  compareHeaders('header', expect.json?.headers ?? {}, answer.headers, compare);
  compareRequestId(answer.headers['x-request-id'], compare);
  const mediaType = answer.headers['content-type']?.split(';')[0];
  if (expect.body !== undefined) {
    compare('media type', 'application/json', mediaType);
    return;
  }
  compare('media type', 'application/problem+json', mediaType);
  compareReplayed(answer.headers, compare);
  const problem = recordOf(answer.body);
  compare('code', expect.outcome, problem.code);
  compare('problem.status', answer.status, problem.status);
  compare('problem.request_id', answer.headers['x-request-id'], problem.request_id);
  const page = `/docs/errors#${expect.outcome}`;
  const type = `${baseUrl ?? ''}${page}`;
  compare('problem.type', type, isLink(problem.type, page, baseUrl) ? type : problem.type);
  compare('problem.title', expect.title, problem.title);
  compare('problem.detail', 'a text', isText(problem.detail) ? 'a text' : problem.detail);
  const errors = Array.isArray(problem.errors) ? problem.errors.map(recordOf) : [];
  compare('errors', pairs(expect.errors), pairs(errors.map(({ field, code }) => [String(field), String(code)])));
  compare('error without a message', undefined, errors.find(({ message }) => !isText(message))?.field);
  compare('fields', shown(expect.fields), shown(problem.fields ?? []));
  for (const part of expect.told) compare(`detail holds ${part}`, true, String(problem.detail).includes(part));
  if (expect.outcome === 'checksum_mismatch') {
    // The text that was hashed ends the sentence, and stands by itself too.
    const repeated = isText(problem.canonical_text) && String(problem.detail).endsWith(` ${problem.canonical_text}`);
    compare(
      'problem.canonical_text',
      'the end of the detail',
      repeated ? 'the end of the detail' : problem.canonical_text,
    );
  }
  for (const name of Object.keys(problem)) {
    if (!problemMembers.includes(name)) compare(`problem.${name}`, undefined, problem[name]);
  }
}

function compareRpc(expect: Expectation, answer: RpcAnswer, compare: Compare): void {
  compare('code', expect.rpc?.code, answer.code);
  compareHeaders('metadata', expect.rpc?.metadata ?? {}, answer.metadata, compare);
  compareRequestId(answer.metadata['x-request-id'], compare);
  if (expect.body !== undefined) {
    // A refusal's own words are the quickest way to what went wrong.
    if (answer.code !== 'OK') compare('message', '', answer.message);
    return;
  }
  compareReplayed(answer.metadata, compare);
  compare('reason', expect.outcome, answer.info?.reason);
  compare('ErrorInfo.domain', errorDomain, answer.info?.domain);
  compare('ErrorInfo request_id', answer.metadata['x-request-id'], answer.info?.requestId);
  compare('message', 'a text', isText(answer.message) ? 'a text' : answer.message);
  const expected = [...expect.errors, ...expect.fields.map((field) => [field, 'differs'] as const)];
  compare('violations', pairs(expected), pairs(answer.violations.map(({ field, reason }) => [field, reason])));
  const undescribed = answer.violations.find(({ description }) => !isText(description));
  compare('violation without a description', undefined, undescribed?.field);
  for (const part of expect.told) compare(`message holds ${part}`, true, answer.message.includes(part));
}

/** Every member of a success, and no member beyond those that are expected. */
function compareBody(
  expect: Expectation,
  answer: HttpAnswer | RpcAnswer,
  context: DifferenceContext,
  compare: Compare,
): void {
  if (expect.body === undefined) return;
  const body = recordOf(answer.body);
  const first = context.first === undefined || context.first.kind === 'none' ? undefined : recordOf(context.first.body);
  for (const [name, expected] of Object.entries(expect.body)) {
    const match = { ...context, name, body, first };
    if (!matches(expected, body[name], match)) compare(name, expectedValue(expected, match), body[name]);
  }
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(expect.body, name)) compare(name, undefined, body[name]);
  }
}

function compareHeaders(
  what: string,
  expected: HeaderExpectations,
  actual: Readonly<Record<string, string>>,
  compare: Compare,
): void {
  for (const [name, value] of Object.entries(expected)) compare(`${what} ${name}`, value ?? undefined, actual[name]);
}

/** A refusal is never an order that was there already. */
function compareReplayed(fields: Readonly<Record<string, string>>, compare: Compare): void {
  compare('idempotent-replayed', undefined, fields['idempotent-replayed']);
}

function compareRequestId(actual: string | undefined, compare: Compare): void {
  const wellFormed = actual !== undefined && /^[A-Za-z0-9._-]{1,128}$/.test(actual);
  compare('x-request-id', 'an id', wellFormed ? 'an id' : actual);
}

/** What two answers have in common that are to be the same: all but the dates and ids of the transport. */
function essence(answer: Answer): string {
  if (answer.kind === 'none') return answer.cause;
  if (answer.kind === 'http') return JSON.stringify([answer.status, answer.body]);
  return JSON.stringify([answer.code, answer.message, answer.info, answer.violations]);
}

function pairs(errors: readonly (readonly string[])[]): string {
  return errors.map((error) => error.join(' ')).join(', ');
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
