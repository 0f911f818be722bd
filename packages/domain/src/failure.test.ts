import { describe, expect, it } from 'vitest';
import { type Failure, type FailureCode, failureAdvice, failureDetail, failures } from './failure.ts';

/** The public contract: code, HTTP status, gRPC status. */
const published: readonly (readonly [FailureCode, number, string | null])[] = [
  ['malformed_request', 400, null],
  ['malformed_json', 400, null],
  ['invalid_order', 400, 'INVALID_ARGUMENT'],
  ['unauthenticated', 401, 'UNAUTHENTICATED'],
  ['permission_denied', 403, 'PERMISSION_DENIED'],
  ['invalid_request', 400, 'INVALID_ARGUMENT'],
  ['checksum_mismatch', 400, 'INVALID_ARGUMENT'],
  ['not_found', 404, 'NOT_FOUND'],
  ['method_not_allowed', 405, null],
  ['request_timeout', 408, null],
  ['order_id_conflict', 409, 'ALREADY_EXISTS'],
  ['payment_id_conflict', 409, 'ALREADY_EXISTS'],
  ['payment_in_progress', 409, 'ABORTED'],
  ['order_already_paid', 409, 'FAILED_PRECONDITION'],
  ['order_cancelled', 409, 'FAILED_PRECONDITION'],
  ['order_expired', 409, 'FAILED_PRECONDITION'],
  ['payment_mismatch', 400, 'INVALID_ARGUMENT'],
  ['webhook_url_not_allowed', 400, 'INVALID_ARGUMENT'],
  ['too_many_endpoints', 409, 'FAILED_PRECONDITION'],
  ['webhook_endpoint_disabled', 409, 'FAILED_PRECONDITION'],
  ['webhooks_not_configured', 409, 'FAILED_PRECONDITION'],
  ['too_many_client_secrets', 409, 'FAILED_PRECONDITION'],
  ['last_client_secret', 409, 'FAILED_PRECONDITION'],
  ['cursor_expired', 410, 'OUT_OF_RANGE'],
  ['body_too_large', 413, 'RESOURCE_EXHAUSTED'],
  ['unsupported_media_type', 415, null],
  ['headers_too_large', 431, 'RESOURCE_EXHAUSTED'],
  ['rate_limited', 429, 'RESOURCE_EXHAUSTED'],
  ['overloaded', 503, 'UNAVAILABLE'],
  ['unavailable', 503, 'UNAVAILABLE'],
  ['deadline_exceeded', 504, 'DEADLINE_EXCEEDED'],
  ['internal', 500, 'INTERNAL'],
];

describe('the failures', () => {
  it('are the published ones, in this order', () => {
    expect(Object.keys(failures)).toStrictEqual(published.map(([code]) => code));
  });

  it.each(published)('map %s to HTTP %i and gRPC %s', (code, httpStatus, grpcStatus) => {
    expect(failures[code]).toMatchObject({ httpStatus, grpcStatus });
  });

  it.each(Object.entries(failures))('have a title, a status of 4xx or 5xx and advice: %s', (code, facts) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(facts.title).toMatch(/^[A-Z].*[^.]$/);
    expect(facts.when).toMatch(/^\S.*\.$/);
    expect(facts.httpStatus).toBeGreaterThanOrEqual(400);
    expect(facts.httpStatus).toBeLessThanOrEqual(599);
  });

  it('have different titles', () => {
    const titles = Object.values(failures).map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });
});

describe('failureDetail', () => {
  it('lists all invalid fields', () => {
    const failure: Failure = {
      kind: 'invalid_order',
      errors: [
        { field: 'order_id', code: 'missing', message: 'is required' },
        { field: 'order_amount', code: 'wrong_type', message: 'must be a number' },
      ],
    };
    expect(failureDetail(failure)).toBe('order_id is required; order_amount must be a number');
  });

  it('lists all invalid parameters', () => {
    const failure: Failure = {
      kind: 'invalid_request',
      errors: [
        { field: 'limit', code: 'out_of_range', message: 'must be a whole number from 1 to 100' },
        { field: 'cursor', code: 'bad_format', message: 'must be the next_cursor of a page' },
      ],
    };
    expect(failureDetail(failure)).toBe(
      'limit must be a whole number from 1 to 100; cursor must be the next_cursor of a page',
    );
  });

  it('contains the text that was hashed', () => {
    expect(failureDetail({ kind: 'checksum_mismatch', canonicalText: String.raw`A\|1|10.00|EUR` })).toContain(
      String.raw`A\|1|10.00|EUR`,
    );
  });

  it('names the fields that conflict', () => {
    expect(failureDetail({ kind: 'order_id_conflict', fields: ['order_amount', 'return_url'] })).toContain(
      'order_amount, return_url',
    );
  });

  it('contains the reason of malformed JSON and the allowed methods', () => {
    expect(failureDetail({ kind: 'malformed_json', reason: 'duplicate key' })).toBe('duplicate key');
    expect(failureDetail({ kind: 'method_not_allowed', allow: 'POST' })).toContain('POST');
  });

  it.each([
    { kind: 'unauthenticated' },
    { kind: 'permission_denied' },
    { kind: 'payment_id_conflict' },
    { kind: 'order_already_paid' },
    { kind: 'order_cancelled' },
    { kind: 'order_expired' },
    { kind: 'payment_mismatch' },
    { kind: 'not_found' },
    { kind: 'body_too_large' },
    { kind: 'unsupported_media_type' },
    { kind: 'request_timeout' },
    { kind: 'rate_limited', retryAfterMs: 1_000 },
    { kind: 'overloaded', retryAfterMs: 1_000 },
    { kind: 'unavailable' },
    { kind: 'deadline_exceeded' },
    { kind: 'internal' },
  ] as const satisfies readonly Failure[])('gives the general advice for $kind', (failure) => {
    expect(failureDetail(failure)).toBe(failures[failure.kind].when);
  });

  it.each(['order_id', 'service_order_id'] as const)('names the %s that was not found', (unknown) => {
    expect(failureDetail({ kind: 'not_found', unknown })).toBe(`You have no order with this ${unknown}.`);
  });

  it('says that no order has a payment link that was not found', () => {
    expect(failureDetail({ kind: 'not_found', unknown: 'payment_link' })).toBe('No order has this payment link.');
  });

  it.each(['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch'] as const)(
    'says for %s that the payment must be refunded',
    (kind) => {
      expect(failureDetail({ kind })).toMatch(/payment .*must be refunded\.$/);
    },
  );

  it.each(['unavailable', 'deadline_exceeded'] as const)('says for %s whether the order may exist', (kind) => {
    expect(failureDetail({ kind, orderMayExist: true })).toContain('The order may have been created.');
    expect(failureDetail({ kind })).not.toContain('order');
  });
});

describe('failureAdvice', () => {
  it.each(Object.keys(failures) as FailureCode[])('does not mention creating for a %s of another request', (code) => {
    expect(failureAdvice(code, false)).not.toMatch(/creat/);
  });

  it('says that an order may have been created only where it may', () => {
    const codes = (Object.keys(failures) as FailureCode[]).filter((code) => /may have/.test(failureAdvice(code, true)));
    expect(codes).toStrictEqual(['unavailable', 'deadline_exceeded']);
  });
});
