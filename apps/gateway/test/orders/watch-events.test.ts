import { Code, ConnectError } from '@connectrpc/connect';
import { EventService, type WatchEventsResponse } from '@order-gateway/contract/gateway/v1/event_service_pb';
import { expect, onTestFinished, test } from 'vitest';
import { eventWatchLimits } from '../../src/limits.ts';
import { grpcClient, rpcErrorOf } from '../helpers/grpc/rpc-clients.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { callJson, cancelNewOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

/** Opens a stream that the test ends. */
function watch(
  request: { cursor?: string; types?: string[]; orderId?: string } = {},
  of = gateway,
  headers = of.headers,
) {
  const ending = new AbortController();
  const messages = grpcClient(EventService, of).watchEvents(request, { headers, signal: ending.signal });
  const iterator = messages[Symbol.asyncIterator]();
  onTestFinished(() => ending.abort());
  const next = async (): Promise<WatchEventsResponse> => {
    const { value, done } = await iterator.next();
    if (done) throw new Error('the stream ended without an error');
    return value;
  };
  return { next, end: () => ending.abort() };
}

const orderIdOf = ({ event }: WatchEventsResponse) => event?.order?.orderId;

/** The next message that has an event. */
async function nextEvent({ next }: ReturnType<typeof watch>): Promise<WatchEventsResponse> {
  for (;;) {
    const message = await next();
    if (message.event !== undefined) return message;
  }
}

test('streams past and new events in order, each with the cursor to continue from here and in a list', async () => {
  for (const orderId of ['one', 'two']) await cancelNewOrder(gateway, orderId);
  const all = watch();
  const first = await nextEvent(all);
  expect([orderIdOf(first), orderIdOf(await nextEvent(all))]).toEqual(['one', 'two']);
  const later = nextEvent(all);
  await cancelNewOrder(gateway, 'three');
  expect(orderIdOf(await later)).toBe('three');

  expect(orderIdOf(await nextEvent(watch({ cursor: first.cursor })))).toBe('two');
  const { body } = await callJson(gateway, 'GET', `/events?cursor=${first.cursor}`);
  expect(body.events.map(({ data }: { data: { order_id: string } }) => data.order_id)).toEqual(['two', 'three']);
});

test('is unknown on the HTTP port, in Connect and gRPC-Web', async () => {
  const url = `${gateway.url}/gateway.v1.EventService/WatchEvents`;
  for (const type of ['application/json', 'application/connect+json', 'application/grpc-web+proto']) {
    const headers = { ...gateway.headers, 'content-type': type };
    const response = await fetch(url, { method: 'POST', headers, body: '{}' });
    expect(await response.json(), type).toMatchObject({ status: 404, code: 'not_found' });
  }
  expect(gateway.errors).toEqual([]);
});

test('streams the events of some types and one order only', async () => {
  const filtered = watch({ types: ['order.cancelled'], orderId: 'filtered' });
  const none = watch({ types: ['order.paid'] });
  for (const orderId of ['other', 'filtered']) await cancelNewOrder(gateway, orderId);
  expect(orderIdOf(await nextEvent(filtered))).toBe('filtered');
  const { event, cursor } = await none.next();
  expect(event).toBeUndefined();
  expect(cursor).not.toBe('');
});

test('rejects more streams of a merchant than its limit, until one ends', async () => {
  const of = await runGateway();
  await cancelNewOrder(of, 'limit');
  const streams = Array.from({ length: eventWatchLimits.streamsPerMerchant }, () => watch({}, of));
  for (const stream of streams) await nextEvent(stream);
  expect(await rpcErrorOf(watch({}, of).next())).toMatchObject({
    code: Code.ResourceExhausted,
    reason: 'rate_limited',
  });
  streams[0]?.end();
  await expect.poll(() => nextEvent(watch({}, of)).then(orderIdOf, () => undefined)).toBe('limit');
});

test('ends with UNAVAILABLE when the gateway stops', async () => {
  const of = await runGateway();
  await cancelNewOrder(of, 'stopping');
  const stream = watch({}, of);
  await nextEvent(stream);
  const ended = rpcErrorOf(stream.next());
  await of.close();
  expect(await ended).toMatchObject({ code: Code.Unavailable });
});

test('ends at the next event or heartbeat when the merchant is disabled', async () => {
  const of = await runGateway();
  await cancelNewOrder(of, 'revoked');
  const stream = watch({}, of);
  await nextEvent(stream);
  await of.accounts.disable(of.credentials.clientId);
  const error = await stream
    .next()
    .then(() => stream.next())
    .catch((reason) => ConnectError.from(reason));
  expect(error).toMatchObject({ code: Code.Unauthenticated });
});
