/** What a member of an answer is held against. */
export interface MatchContext {
  readonly name: string;
  /** The whole answer, for members that must agree with each other. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The order as it was sent. */
  readonly sent: Readonly<Record<string, unknown>> | undefined;
  /** The success that the fixture's first call got at the same door. */
  readonly first: Readonly<Record<string, unknown>> | undefined;
}

type Matcher = (actual: unknown, context: MatchContext) => boolean;

/** The words that a fixture may write in place of a value that it cannot know. */
const matchers: Readonly<Record<string, Matcher>> = {
  /** A number from 1 to 2^53 - 1. */
  $integer: (actual) => Number.isSafeInteger(actual) && Number(actual) > 0,
  /** ISO 8601 with milliseconds and the UTC offset, and a moment that exists. */
  $timestamp: (actual) =>
    typeof actual === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/.test(actual) &&
    !Number.isNaN(Date.parse(actual)),
  /** 32 base62 characters. */
  $token: (actual) => typeof actual === 'string' && /^[0-9A-Za-z]{32}$/.test(actual),
  /** An absolute URL that ends in /payment/ and the token of the same answer. */
  $link: (actual, { body }) =>
    typeof actual === 'string' && /^https?:\/\/[^/]/.test(actual) && actual.endsWith(`/payment/${body.order_token}`),
  /** What was sent under the same name. */
  $sent: (actual, { name, sent }) => actual !== undefined && actual === sent?.[name],
  /** What the first call was answered under the same name. */
  $same: (actual, { name, first }) => actual !== undefined && actual === first?.[name],
};

/** Whether a member is what the fixture expects: the value itself, or what a matcher's word stands for. */
export function matches(expected: unknown, actual: unknown, context: MatchContext): boolean {
  const matcher = typeof expected === 'string' && Object.hasOwn(matchers, expected) ? matchers[expected] : undefined;
  return matcher === undefined ? actual === expected : matcher(actual, context);
}

/** The value that a matcher's word stands for, where it stands for one, so that a report can show it. */
export function expectedValue(expected: unknown, { name, sent, first }: MatchContext): unknown {
  if (expected === '$sent') return sent?.[name];
  if (expected === '$same') return first?.[name];
  return expected;
}
