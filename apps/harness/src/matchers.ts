/** What a member of an answer is held against. */
export interface MatchContext {
  readonly name: string;
  /** The whole answer, for members that must agree with each other. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The order as it was sent. */
  readonly sent: Readonly<Record<string, unknown>> | undefined;
  /** The success that the fixture's first call got at the same door. */
  readonly first: Readonly<Record<string, unknown>> | undefined;
  /** What the gateway's links begin with; `undefined` where that is not known. */
  readonly baseUrl: string | undefined;
  /** The time of the answer, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** A gateway's clock may differ from ours by so much; the offset of a time zone is more. */
const clockDifferenceMaxMs = 5 * 60_000;

type Matcher = (actual: unknown, context: MatchContext) => boolean;

/** The words that a fixture may write in place of a value that it cannot know. */
const matchers: Readonly<Record<string, Matcher>> = {
  /** A number from 1 to 2^53 - 1. */
  $integer: (actual) => Number.isSafeInteger(actual) && Number(actual) > 0,
  /** ISO 8601 with milliseconds and the UTC offset, and a moment that is about now. */
  $timestamp: (actual, { nowMs }) =>
    typeof actual === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/.test(actual) &&
    Math.abs(Date.parse(actual) - nowMs) <= clockDifferenceMaxMs,
  /** 32 base62 characters. */
  $token: (actual) => typeof actual === 'string' && /^[0-9A-Za-z]{32}$/.test(actual),
  /** The base URL, /payment/ and the token of the same answer. */
  $link: (actual, { body, baseUrl }) => isLink(actual, `/payment/${body.order_token}`, baseUrl),
  /** What was sent under the same name. */
  $sent: (actual, { name, sent }) => actual !== undefined && actual === sent?.[name],
  /** What the first call was answered under the same name. */
  $same: (actual, { name, first }) => actual !== undefined && actual === first?.[name],
};

/** Whether a text is the base URL, or, where that is not known, any absolute one, and a path below it. */
export function isLink(actual: unknown, path: string, baseUrl: string | undefined): boolean {
  if (baseUrl !== undefined) return actual === `${baseUrl}${path}`;
  return typeof actual === 'string' && /^https?:\/\/[^/]/.test(actual) && actual.endsWith(path);
}

/** Whether a member is what the fixture expects: the value itself, or what a matcher's word stands for. */
export function matches(expected: unknown, actual: unknown, context: MatchContext): boolean {
  const matcher = typeof expected === 'string' && Object.hasOwn(matchers, expected) ? matchers[expected] : undefined;
  return matcher === undefined ? actual === expected : matcher(actual, context);
}

/** The value that a matcher's word stands for, where it stands for one, so that a report can show it. */
export function expectedValue(expected: unknown, { name, body, sent, first, baseUrl }: MatchContext): unknown {
  if (expected === '$sent') return sent?.[name];
  if (expected === '$same') return first?.[name];
  if (expected === '$link' && baseUrl !== undefined) return `${baseUrl}/payment/${body.order_token}`;
  return expected;
}
