import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type AuditResult, auditErrors, auditTable, formatAudit, repeatUntilFinal } from './audit.ts';

const clean: AuditResult = {
  acknowledged: 12,
  stored: 14,
  unacknowledged: 2,
  lost: 0,
  duplicated: 0,
  changed: 0,
  unreadable: 0,
  changes: 3,
  unexplained: 0,
  undelivered: 0,
  copies: 1,
  examples: [],
};

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

/** Repeats an audit that finds these errors at these times after the start. Returns the result and the last time. */
async function repeat(errorsAt: Readonly<Record<number, Partial<AuditResult>>>, rejected: readonly string[] = []) {
  const startedAt = Date.now();
  const audits = Object.entries(errorsAt).values();
  const audit = async () => {
    const { value: [afterMs, errors] = [] } = audits.next();
    vi.setSystemTime(startedAt + Number(afterMs));
    return { ...clean, ...errors };
  };
  const result = await repeatUntilFinal(audit, rejected);
  return { result, endedAfterMs: Date.now() - startedAt };
}

test('an audit is repeated until it finds no error', async () => {
  const audits = { 10: { undelivered: 2 }, 600: { unexplained: 1, undelivered: 1 }, 1200: {}, 1800: { lost: 1 } };
  expect(await repeat(audits)).toEqual({ result: clean, endedAfterMs: 1_200 });
});

test.each([
  ['only deliveries are missing', { undelivered: 2 }, 400_000],
  ['an order is lost', { lost: 1, undelivered: 2 }, 60_000],
])('if %s, the audit reports the errors after its time limit', async (_, errors, limitMs) => {
  const { result, endedAfterMs } = await repeat({ 0: errors, [limitMs]: errors, [limitMs + 1]: errors });
  expect(result).toEqual({ ...clean, ...errors });
  expect(endedAfterMs).toBe(limitMs + 1);
});

test('rejected webhooks are undelivered, end the audit, and 20 of them are shown', async () => {
  const rejected = Array.from({ length: 21 }, (_, index) => `rejected ${index}`);
  const { result, endedAfterMs } = await repeat({ 0: { undelivered: 1, examples: ['lost'] } }, rejected);
  expect(result).toEqual({ ...clean, undelivered: 22, examples: ['lost', ...rejected.slice(0, 20)] });
  expect(endedAfterMs).toBe(0);
});

test.each(['lost', 'duplicated', 'changed', 'unreadable', 'unexplained', 'undelivered'] as const)(
  'an order that is %s is an error',
  (kind) => {
    expect(auditErrors({ ...clean, [kind]: 1 })).toBe(1);
  },
);

test('orders without an acknowledgement, and copies, are not errors', () => {
  expect(auditErrors({ ...clean, undelivered: undefined, copies: undefined })).toBe(0);
  expect(auditErrors(clean)).toBe(0);
});

test('prints every count below its name, and the examples indented', () => {
  const result = {
    ...clean,
    lost: 4,
    undelivered: undefined,
    examples: ['load-7-1: unexplained\ncall  sent', 'other'],
  };
  const counts = '12 4 0 0 0 14 2 3 0 - 1'.split(' ');
  expect(auditTable(result).row).toEqual(counts);
  const [head = '', row = '', ...examples] = formatAudit(result).split('\n');
  expect(head.trim().split(/ +/)).toEqual(['audit', ...auditTable(result).head]);
  expect(row.trim().split(/ +/)).toEqual(counts);
  expect(examples).toEqual(['  load-7-1: unexplained', '    call  sent', '  other', '']);
});
