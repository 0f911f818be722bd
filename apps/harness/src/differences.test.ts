import { describe, expect, test } from 'vitest';
import type { Answer } from './clients/client.ts';
import { differences } from './differences.ts';
import type { Expectation } from './fixtures/fixture.ts';

const token = 'abcdefghijklmnopqrstuvwxyz012345';
const body = {
  service_order_id: 17,
  created_at: '2026-11-20T21:01:42.172+00:00',
  order_id: 'A-1',
  order_status: 'UN_PAID',
  order_token: token,
  payment_link: `https://pay.example.com/payment/${token}`,
};
const sent = { order_id: 'A-1' };
const baseUrl = 'https://pay.example.com';
const nowMs = Date.parse('2026-11-20T21:01:43Z');
const context = { sent, first: undefined, secrets: ['sk_secret'], baseUrl, nowMs };

const plain = { title: undefined, errors: [], fields: [], told: [], untold: [], sameAsFirst: false };
const created: Expectation = {
  ...plain,
  outcome: 'created',
  json: { status: 201, headers: { 'idempotent-replayed': null } },
  rpc: { code: 'OK', metadata: { 'idempotent-replayed': null } },
  body: {
    service_order_id: '$integer',
    created_at: '$timestamp',
    order_id: '$sent',
    order_status: 'UN_PAID',
    order_token: '$token',
    payment_link: '$link',
  },
};
const replayed: Expectation = {
  ...created,
  json: { status: 200, headers: { 'idempotent-replayed': 'true' } },
  body: Object.fromEntries(Object.keys(body).map((name) => [name, '$same'])),
};
const invalid: Expectation = {
  ...plain,
  outcome: 'invalid_order',
  title: 'The order has invalid fields',
  json: { status: 400, headers: {} },
  rpc: { code: 'INVALID_ARGUMENT', metadata: {} },
  body: undefined,
  errors: [['order_note', 'blank']],
};

function http(status: number, json: object, headers = {}): Answer {
  const type = status < 300 ? 'application/json' : 'application/problem+json; charset=utf-8';
  const all = { 'content-type': type, 'x-request-id': 'r1', ...headers };
  return { kind: 'http', status, headers: all, body: json, text: JSON.stringify([all, json]) };
}

const problem = {
  type: 'https://pay.example.com/docs/errors#invalid_order',
  title: 'The order has invalid fields',
  status: 400,
  detail: 'order_note must contain at least one non-blank character',
  code: 'invalid_order',
  request_id: 'r1',
  errors: [{ field: 'order_note', code: 'blank', message: 'must contain at least one non-blank character' }],
};
const refusal: Answer = {
  kind: 'rpc',
  code: 'INVALID_ARGUMENT',
  message: 'order_note must contain at least one non-blank character',
  metadata: { 'x-request-id': 'r1' },
  body: undefined,
  info: { reason: 'invalid_order', domain: 'order-gateway', requestId: 'r1' },
  violations: [{ field: 'order_note', reason: 'blank', description: 'must contain at least one non-blank character' }],
  text: '',
};

function whats(expectation: Expectation, answer: Answer, more = {}): string[] {
  return differences(expectation, answer, { ...context, ...more }).map(({ what }) => what);
}

describe('a kept promise has no difference', () => {
  test('a new order', () => expect(whats(created, http(201, body))).toEqual([]));
  test('a refusal over HTTP', () => expect(whats(invalid, http(400, problem))).toEqual([]));
  test('a refusal over RPC', () => expect(whats(invalid, refusal)).toEqual([]));
  test('the same order again', () => {
    const again = http(200, body, { 'idempotent-replayed': 'true' });
    expect(whats(replayed, again, { first: http(201, body) })).toEqual([]);
  });
});

describe('a broken promise is named', () => {
  test.for([
    ['service_order_id', { service_order_id: '17' }],
    ['service_order_id', { service_order_id: 0 }],
    ['service_order_id', { service_order_id: 2 ** 53 }],
    ['created_at', { created_at: '2026-11-20T21:01:42.172Z' }],
    ['created_at', { created_at: '2026-13-20T21:01:42.172+00:00' }],
    ['created_at', { created_at: '2026-11-20T22:01:42.172+00:00' }],
    ['order_id', { order_id: 'a-1' }],
    ['order_status', { order_status: 'PAID' }],
    ['payment_link', { payment_link: 'https://pay.example.com/payment/other' }],
    ['payment_link', { payment_link: `https://elsewhere.example.com/payment/${token}` }],
    ['payment_link', { payment_link: `https://pay.example.com/v1/payment/${token}` }],
    ['customer_email', { customer_email: 'ada@example.com' }],
    ['order_id', { order_id: undefined }],
  ] as const)('in a success: %s', ([what, change]) => {
    expect(whats(created, http(201, { ...body, ...change }))).toEqual([what]);
  });

  test('a status, a header and a media type', () => {
    const answer = http(200, body, { 'idempotent-replayed': 'true', 'content-type': 'text/html' });
    expect(whats(created, answer)).toEqual(['status', 'header idempotent-replayed', 'media type']);
  });

  test('another order in place of the first', () => {
    const again = http(200, { ...body, service_order_id: 18 }, { 'idempotent-replayed': 'true' });
    expect(differences(replayed, again, { ...context, first: http(201, body) })).toEqual([
      { what: 'service_order_id', expected: '17', actual: '18' },
    ]);
  });

  test.for([
    ['code', { code: 'invalid' }],
    ['problem.status', { status: 422 }],
    ['problem.request_id', { request_id: 'r2' }],
    ['problem.title', { title: 'The fields of the order are invalid' }],
    ['problem.type', { type: 'https://pay.example.com/docs/errors#internal' }],
    ['problem.type', { type: 'https://elsewhere.example.com/docs/errors#invalid_order' }],
    ['problem.detail', { detail: '' }],
    ['errors', { errors: [] }],
    ['errors', { errors: [...problem.errors, { field: 'order_id', code: 'missing', message: 'is required' }] }],
    ['error without a message', { errors: [{ field: 'order_note', code: 'blank' }] }],
    ['fields', { fields: ['order_note'] }],
    ['problem.stack', { stack: 'at createOrder' }],
  ] as const)('in a problem: %s', ([what, change]) => {
    expect(whats(invalid, http(400, { ...problem, ...change }))).toEqual([what]);
  });

  test.for([
    ['code', { code: 'UNKNOWN' }],
    ['reason', { info: { ...refusal.info, reason: 'other' } }],
    ['ErrorInfo.domain', { info: { ...refusal.info, domain: 'other' } }],
    ['ErrorInfo request_id', { info: { ...refusal.info, requestId: 'r2' } }],
    ['violations', { violations: [] }],
    ['message', { message: '' }],
  ] as const)('in an RPC refusal: %s', ([what, change]) => {
    expect(whats(invalid, { ...refusal, ...change } as Answer)).toEqual([what]);
  });

  test('a refusal that says it replays an order', () => {
    const replayed = { 'idempotent-replayed': 'true' };
    expect(whats(invalid, http(400, problem, replayed))).toEqual(['idempotent-replayed']);
    const metadata = { 'x-request-id': 'r1', ...replayed };
    expect(whats(invalid, { ...refusal, metadata } as Answer)).toEqual(['idempotent-replayed']);
  });

  test('where the base URL is not known, the end of a link', () => {
    const elsewhere = { baseUrl: undefined };
    expect(whats(created, http(201, body), elsewhere)).toEqual([]);
    expect(whats(created, http(201, { ...body, payment_link: 'https://pay.example.com/payment/' }), elsewhere)).toEqual(
      ['payment_link'],
    );
    expect(whats(invalid, http(400, problem), elsewhere)).toEqual([]);
    expect(whats(invalid, http(400, { ...problem, type: 'about:blank' }), elsewhere)).toEqual(['problem.type']);
  });

  test('a secret, and whatever must not be told', () => {
    const leaky = http(400, { ...problem, detail: 'not sk_secret, not Ada' });
    expect(whats({ ...invalid, untold: ['Ada'] }, leaky)).toEqual(['Ada in the answer', 'a secret in the answer']);
  });

  test('what must be told', () => {
    expect(whats({ ...invalid, told: ['a|b'] }, http(400, problem))).toEqual(['detail holds a|b']);
    expect(whats({ ...invalid, told: ['a|b'] }, refusal)).toEqual(['message holds a|b']);
  });

  test('a checksum’s problem without the text that was hashed, or with another', () => {
    const mismatch = {
      ...invalid,
      outcome: 'checksum_mismatch',
      title: 'The order_checksum does not match',
      errors: [],
      told: ['a|b'],
    };
    const { errors: _errors, ...plainProblem } = problem;
    const type = 'https://pay.example.com/docs/errors#checksum_mismatch';
    const about = { type, title: mismatch.title, code: 'checksum_mismatch' };
    const told = { ...plainProblem, ...about, detail: 'The gateway hashed a|b' };
    expect(whats(mismatch, http(400, { ...told, canonical_text: 'a|b' }))).toEqual([]);
    expect(whats(mismatch, http(400, told))).toEqual(['problem.canonical_text']);
    expect(whats(mismatch, http(400, { ...told, canonical_text: 'a' }))).toEqual(['problem.canonical_text']);
  });

  test('a missing request id', () => {
    expect(whats(created, http(201, body, { 'x-request-id': undefined }))).toEqual(['x-request-id']);
  });

  test('an answer that is not the first one’s', () => {
    const first = http(400, { ...problem, detail: 'another sentence' });
    expect(whats({ ...invalid, sameAsFirst: true }, http(400, problem), { first })).toEqual(['the answer']);
  });

  test('no answer at all', () => {
    expect(differences(created, { kind: 'none', cause: 'ECONNREFUSED' }, context)).toEqual([
      { what: 'answer', expected: 'an answer', actual: 'none: ECONNREFUSED' },
    ]);
  });
});
