import { liveSecretsMax } from '@order-gateway/domain/accounts';
import type { Failure, FailureCode } from '@order-gateway/domain/failure';
import { endpointsMax } from '@order-gateway/domain/webhooks';
import { describe, expect, it } from 'vitest';
import { errorCatalogue, failureAdvice, failureDetail } from '../src/errors.ts';

describe('the error catalogue', () => {
  it.each(Object.entries(errorCatalogue))('has a title, a status of 4xx or 5xx and advice: %s', (code, entry) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(entry.title).toMatch(/^[A-Z].*[^.]$/);
    expect(entry.when).toMatch(/^\S.*\.$/);
    expect(entry.httpStatus).toBeGreaterThanOrEqual(400);
    expect(entry.httpStatus).toBeLessThanOrEqual(599);
  });

  it('has a different title for each code', () => {
    const titles = Object.values(errorCatalogue).map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });

  it('states the limits of the domain', () => {
    expect(errorCatalogue.too_many_endpoints.when).toContain(` ${endpointsMax} webhook endpoints,`);
    expect(errorCatalogue.too_many_client_secrets.when).toContain(` ${liveSecretsMax} client secrets `);
  });
});

describe('failureDetail', () => {
  const errors = [
    { field: 'order_id', code: 'missing', message: 'is required' },
    { field: 'order_amount', code: 'wrong_type', message: 'must be a number' },
  ] as const;

  it.each<[Failure, string]>([
    [{ kind: 'internal' }, errorCatalogue.internal.when],
    [{ kind: 'invalid_order', errors }, 'order_id is required; order_amount must be a number'],
    [{ kind: 'checksum_mismatch', canonicalText: String.raw`A\|1|10.00` }, String.raw`A\|1|10.00`],
    [{ kind: 'order_id_conflict', fields: ['order_amount', 'return_url'] }, 'order_amount, return_url'],
    [{ kind: 'malformed_json', reason: 'duplicate key' }, 'duplicate key'],
    [{ kind: 'method_not_allowed', allow: 'POST' }, 'POST'],
    [{ kind: 'not_found', unknown: 'order_id' }, 'You have no order with this order_id.'],
    [{ kind: 'not_found', unknown: 'service_order_id' }, 'You have no order with this service_order_id.'],
    [{ kind: 'not_found', unknown: 'payment_link' }, 'No order has this payment link.'],
    [{ kind: 'unavailable', orderMayExist: true }, 'The order may have been created.'],
    [{ kind: 'deadline_exceeded', orderMayExist: true }, 'The order may have been created.'],
  ])('returns for %o a text with %j', (failure, text) => {
    expect(failureDetail(failure)).toContain(text);
  });

  it.each(['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch'] as const)(
    'says for %s that the payment must be refunded',
    (kind) => {
      expect(failureDetail({ kind })).toMatch(/payment .*must be refunded\.$/);
    },
  );

  it.each(['unavailable', 'deadline_exceeded'] as const)(
    'does not mention an order for %s if the request cannot have created one',
    (kind) => {
      expect(failureDetail({ kind })).not.toContain('order');
    },
  );
});

describe('failureAdvice', () => {
  it.each(Object.keys(errorCatalogue) as FailureCode[])(
    'does not say for %s that an order may have been created if the request does not create an order',
    (code) => {
      expect(failureAdvice(code, false)).not.toMatch(/creat/);
    },
  );

  it('says only for unavailable and deadline_exceeded that an order may have been created', () => {
    const codes = (Object.keys(errorCatalogue) as FailureCode[]).filter((code) =>
      /may have/.test(failureAdvice(code, true)),
    );
    expect(codes).toStrictEqual(['unavailable', 'deadline_exceeded']);
  });
});
