import { parseOrder } from '@order-gateway/domain/orders';
import { loadFixtures, protocols } from '@order-gateway/fixtures';
import { expect, test } from 'vitest';
import { parseProfile } from '../profile/profile.ts';
import { createCallMaker, kindOf, orderNumberOf, requestOf } from './call-maker.ts';

const set = await loadFixtures();
const credentials = [1, 2, 3].map((number) => ({ clientId: `app_${number}`, clientSecret: `sk_${number}` }));
const profile = {
  protocol: 'mixed',
  phases: [{ seconds: 1, rate: 1 }],
  merchants: 3,
  replay_share: 0.2,
  invalid_share: 0.1,
};
const settings = { ...parseProfile(profile), seed: 7 };
const numbers = Array.from({ length: 2_000 }, (_, number) => number);

test('the same seed makes the same calls, in any order, and a different seed makes different calls', () => {
  const make = createCallMaker(settings, set, credentials);
  const again = createCallMaker(settings, set, credentials);
  const backwards = numbers.toReversed().map(again).toReversed();
  expect(backwards).toEqual(numbers.map(make));
  const other = createCallMaker({ ...settings, seed: 8 }, set, credentials);
  expect(other(0).bytes).not.toEqual(make(0).bytes);
});

test('shares, protocols and merchants are as requested', () => {
  const kinds = Map.groupBy(numbers, (number) => kindOf(settings, number));
  expect(kinds.get('replay')?.length).toBeGreaterThan(330);
  expect(kinds.get('replay')?.length).toBeLessThan(470);
  expect(kinds.get('invalid')?.length).toBeGreaterThan(150);
  expect(kinds.get('invalid')?.length).toBeLessThan(250);
  const calls = numbers.map(createCallMaker(settings, set, credentials));
  expect(new Set(calls.map(({ protocol }) => protocol))).toEqual(new Set(protocols));
  const clients = calls.filter(({ order }) => order !== undefined).map(({ headers }) => headers['x-client-id']);
  expect(new Set(clients)).toEqual(new Set(credentials.map(({ clientId }) => clientId)));
});

test('a repeated order has the same bytes as the earlier order in the same protocol', () => {
  const make = createCallMaker({ ...settings, protocol: 'json' }, set, credentials);
  const repeated = numbers.filter(
    (number) => kindOf(settings, number) === 'replay' && orderNumberOf(settings, number) !== number,
  );
  expect(repeated.length).toBeGreaterThan(300);
  for (const number of repeated) {
    const source = orderNumberOf(settings, number);
    expect(source).toBeLessThan(number);
    expect(kindOf(settings, source)).toBe('new');
    expect(make(number).bytes).toEqual(make(source).bytes);
    expect(make(number).headers).toEqual(make(source).headers);
  }
});

test('new orders are valid, and no two have the same id', () => {
  const make = createCallMaker({ ...settings, protocol: 'connect', invalid_share: 0 }, set, credentials);
  const fresh = numbers.filter((number) => kindOf({ ...settings, invalid_share: 0 }, number) === 'new').map(make);
  for (const { bytes = [] } of fresh)
    expect(parseOrder(JSON.parse(Buffer.from(bytes).toString()))).toMatchObject({ ok: true });
  expect(new Set(fresh.map(({ order }) => order?.orderId)).size).toBe(fresh.length);
});

test('in every protocol, the failing calls include invalid orders, wrong credentials and wrong checksums', () => {
  for (const protocol of protocols) {
    const make = createCallMaker({ ...settings, protocol, invalid_share: 1, replay_share: 0 }, set, credentials);
    const outcomes = new Set(numbers.slice(0, 500).flatMap((number) => make(number).expected));
    expect([...outcomes]).toEqual(expect.arrayContaining(['invalid_order', 'unauthenticated', 'checksum_mismatch']));
  }
});

test('calls about earlier orders have the requested shares, and concern only acknowledged orders', () => {
  const aboutOrders = { get_share: 0.2, pay_share: 0.2, cancel_share: 0.1, list_share: 0.1 };
  const lifecycle = { ...settings, invalid_share: 0, replay_share: 0, ...aboutOrders };
  const [known, checkout] = [{ order_token: 't', created_at: '2026-11-20T21:01:42.172+00:00' }, credentials[2]];
  const make = createCallMaker(lifecycle, set, credentials, { checkout, known: () => known });
  const calls = numbers.map(make);
  const byOperation = Map.groupBy(calls, ({ operation }) => operation);
  const counts = Object.fromEntries([...byOperation].map(([operation, some]) => [operation, some.length]));
  expect(counts.GetOrder).toBeGreaterThan(330);
  expect(counts.RecordPayment).toBeGreaterThan(330);
  expect(counts.CancelOrder).toBeGreaterThan(150);
  expect(counts.ListOrders).toBeGreaterThan(150);
  expect(counts.CreateOrder).toBeLessThan(900);
  for (const { protocol, headers } of byOperation.get('RecordPayment') ?? []) {
    expect(protocol).not.toBe('json');
    expect(headers['x-client-id']).toBe(checkout?.clientId);
  }
  expect(byOperation.get('RecordPayment')?.some(({ request }) => 'attempt_id' in Object(request))).toBe(false);
  const unknown = numbers.map(createCallMaker(lifecycle, set, credentials, { checkout, known: () => undefined }));
  expect(new Set(unknown.map(({ operation }) => operation))).toEqual(new Set(['CreateOrder', 'ListOrders']));
});

test('refunds, reports and ends have the requested shares, and concern the merchant’s refunds, the provider’s and disputes', () => {
  const [known, checkout] = [{ order_token: 't', created_at: '2026-11-20T21:01:42.172+00:00' }, credentials[2]];
  const refunds = { ...settings, refund_share: 0.2, report_share: 0.2, fail_share: 0.1 };
  const calls = numbers.map(createCallMaker(refunds, set, credentials, { checkout, known: () => known }));
  const requests = (operation: string) => calls.filter((call) => call.operation === operation).map(requestOf);
  expect(requests('CreateRefund').length).toBeGreaterThan(330);
  expect(requests('RecordRefund').length).toBeGreaterThan(200);
  expect(requests('RecordDispute').length).toBeGreaterThan(70);
  const [ended] = requests('FailRefund');
  expect(ended).toEqual({ kind: 'fail refund', refundId: expect.stringMatching(/^refund-[012]-of-load-7-\d+$/) });
  expect(requests('FailRefund').length).toBeGreaterThan(150);
  // Some reports say when the refund succeeded, or why it failed.
  const isDetailed = (status: string, member: string) => (request: ReturnType<typeof requestOf>) =>
    Object(request).status === status && Object(request)[member] !== undefined;
  for (const details of [isDetailed('SUCCEEDED', 'refundedAtMs'), isDetailed('FAILED', 'reason')]) {
    const count = requests('RecordRefund').filter(details).length;
    expect(count).toBeGreaterThan(20);
    expect(count).toBeLessThan(100);
  }
  const isOwn = (request: ReturnType<typeof requestOf>) => Object(request).refundId === null;
  const [own, named] = [requests('RecordRefund').filter(isOwn), requests('RecordRefund').filter((r) => !isOwn(r))];
  expect(own.length).toBeGreaterThan(50);
  // A report names a refund with the amount that the merchant requested.
  const requested = new Set(requests('CreateRefund').map((r) => `${Object(r).refundId} ${Object(r).amount}`));
  expect(named.filter((r) => requested.has(`${Object(r).refundId} ${Object(r).amount}`)).length).toBeGreaterThan(20);
  const unknown = numbers.map(createCallMaker(refunds, set, credentials, { checkout, known: () => undefined }));
  expect(new Set(unknown.map(({ operation }) => operation))).toEqual(new Set(['CreateOrder']));
});

test('payment attempts and metadata have the requested shares, and a payment names its attempt', () => {
  const attemptSettings = {
    ...settings,
    start_share: 0.2,
    end_share: 0.1,
    pay_share: 0.2,
    list_share: 0.1,
    metadata_share: 0.5,
  };
  const [known, checkout] = [{ order_token: 't', created_at: '2026-11-20T21:01:42.172+00:00' }, credentials[2]];
  const calls = numbers.map(createCallMaker(attemptSettings, set, credentials, { checkout, known: () => known }));
  const requests = (operation: string) =>
    calls.flatMap((call) => (call.operation === operation && call.order !== undefined ? [Object(call.request)] : []));
  expect(requests('StartPayment').length).toBeGreaterThan(330);
  expect(requests('EndPayment').length).toBeGreaterThan(150);
  for (const { attempt_id } of [...requests('StartPayment'), ...requests('EndPayment'), ...requests('RecordPayment')])
    expect(attempt_id).toMatch(/^attempt-[01]-of-load-7-\d+$/);
  const created = requests('CreateOrder');
  const tagged = created.filter(({ metadata }) => metadata !== undefined);
  expect(tagged.length).toBeGreaterThan(created.length * 0.4);
  expect(tagged.length).toBeLessThan(created.length * 0.6);
  const filtered = calls.filter(
    ({ operation, request }) => operation === 'ListOrders' && 'metadata' in Object(request),
  );
  expect(filtered.length).toBeGreaterThan(0);
});
