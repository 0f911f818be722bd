import { describe, expect, it } from 'vitest';
import { type Failure, type FailureCode, failureDetail, failures } from './failure.ts';
import type { MerchantId } from './merchant.ts';

/** The public table of refusals: code, HTTP status, gRPC status. */
const told: readonly (readonly [FailureCode, number, string | null])[] = [
  ['malformed_json', 400, null],
  ['invalid_order', 400, 'INVALID_ARGUMENT'],
  ['unauthenticated', 401, 'UNAUTHENTICATED'],
  ['checksum_mismatch', 400, 'INVALID_ARGUMENT'],
  ['not_found', 404, 'NOT_FOUND'],
  ['method_not_allowed', 405, null],
  ['order_id_conflict', 409, 'ALREADY_EXISTS'],
  ['body_too_large', 413, 'RESOURCE_EXHAUSTED'],
  ['unsupported_media_type', 415, null],
  ['rate_limited', 429, 'RESOURCE_EXHAUSTED'],
  ['overloaded', 503, 'UNAVAILABLE'],
  ['unavailable', 503, 'UNAVAILABLE'],
  ['deadline_exceeded', 504, 'DEADLINE_EXCEEDED'],
  ['internal', 500, 'INTERNAL'],
];

// The names of google.rpc.Code, less OK.
const grpcStatusNames = [
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'UNAUTHENTICATED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
];

describe('the failures', () => {
  it('are those that are told, in that order', () => {
    expect(Object.keys(failures)).toStrictEqual(told.map(([code]) => code));
  });

  it.each(told)('answer %s with HTTP %i and gRPC %s', (code, httpStatus, grpcStatus) => {
    expect(failures[code]).toMatchObject({ httpStatus, grpcStatus });
  });

  it.each(Object.entries(failures))('have a title, a status of 4xx or 5xx and a reason: %s', (code, facts) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(facts.title).toMatch(/^[A-Z].*[^.]$/);
    expect(facts.when).toMatch(/^\S.*\.$/);
    expect(facts.httpStatus).toBeGreaterThanOrEqual(400);
    expect(facts.httpStatus).toBeLessThanOrEqual(599);
    if (facts.grpcStatus !== null) expect(grpcStatusNames).toContain(facts.grpcStatus);
  });

  it('have titles that tell them apart', () => {
    const titles = Object.values(failures).map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });
});

describe('failureDetail', () => {
  it('lists all broken fields', () => {
    const failure: Failure = {
      kind: 'invalid_order',
      errors: [
        { field: 'order_id', code: 'missing', message: 'is required' },
        { field: 'order_amount', code: 'wrong_type', message: 'must be a number' },
      ],
    };
    expect(failureDetail(failure)).toBe('order_id is required; order_amount must be a number');
  });

  it('holds the text that was hashed', () => {
    expect(failureDetail({ kind: 'checksum_mismatch', canonicalText: String.raw`A\|1|10.00|EUR` })).toContain(
      String.raw`A\|1|10.00|EUR`,
    );
  });

  it('names the fields of a conflict', () => {
    expect(failureDetail({ kind: 'order_id_conflict', fields: ['order_amount', 'return_url'] })).toContain(
      'order_amount, return_url',
    );
  });

  it('gives the reason of malformed JSON and the methods that are allowed', () => {
    expect(failureDetail({ kind: 'malformed_json', reason: 'duplicate key' })).toBe('duplicate key');
    expect(failureDetail({ kind: 'method_not_allowed', allow: 'POST' })).toContain('POST');
  });

  it.each([
    { kind: 'unauthenticated' },
    { kind: 'not_found' },
    { kind: 'body_too_large' },
    { kind: 'unsupported_media_type' },
    { kind: 'rate_limited', retryAfterSeconds: 1 },
    { kind: 'overloaded', retryAfterSeconds: 1 },
    { kind: 'unavailable' },
    { kind: 'deadline_exceeded' },
    { kind: 'internal' },
  ] as const satisfies readonly Failure[])('tells what to do about $kind', (failure) => {
    expect(failureDetail(failure)).toBe(failures[failure.kind].when);
  });
});
