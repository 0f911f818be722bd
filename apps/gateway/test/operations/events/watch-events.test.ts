import { Code, ConnectError } from '@connectrpc/connect';
import { EventService, type WatchEventsResponse } from '@order-gateway/contract/gateway/v1/event_service_pb';
import { expect, onTestFinished, test } from 'vitest';
import { eventWatchLimits } from '../../../src/limits.ts';
import { grpcClient, rpcErrorOf } from '../../helpers/grpc/rpc-clients.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, cancelNewOrder } from '../../helpers/send-order.ts';

const gateway = useGateway();

/** Opens a stream that ends with the test. */
function watch(request: { cursor?: string; types?: string[]; orderId?: string } = {}, target = gateway) {
  const ending = new AbortController();
  const options = { headers: target.headers, signal: ending.signal };
  const messages = grpcClient(EventService, target).watchEvents(request, options);
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

/** Returns the next message that has an event. */
async function nextEvent({ next }: ReturnType<typeof watch>): Promise<WatchEventsResponse> {
  for (;;) {
    const message = await next();
    if (message.event !== undefined) return message;
  }
}

test('WatchEvents streams past and new events in order, each with a cursor that streams and lists accept', async () => {
  for (const orderId of ['one', 'two']) await cancelNewOrder(gateway, orderId);
  const stream = watch();
  const first = await nextEvent(stream);
  expect([orderIdOf(first), orderIdOf(await nextEvent(stream))]).toEqual(['one', 'two']);
  const later = nextEvent(stream);
  await cancelNewOrder(gateway, 'three');
  expect(orderIdOf(await later)).toBe('three');

  expect(orderIdOf(await nextEvent(watch({ cursor: first.cursor })))).toBe('two');
  const { body } = await callJson(gateway, 'GET', `/events?cursor=${first.cursor}`);
  expect(body.events.map(({ data }: { data: { order_id: string } }) => data.order_id)).toEqual(['two', 'three']);
});

test('WatchEvents is not found on the HTTP port, over Connect or gRPC-Web', async () => {
  const url = `${gateway.url}/gateway.v1.EventService/WatchEvents`;
  for (const type of ['application/json', 'application/connect+json', 'application/grpc-web+proto']) {
    const headers = { ...gateway.headers, 'content-type': type };
    const response = await fetch(url, { method: 'POST', headers, body: '{}' });
    expect(await response.json(), type).toMatchObject({ status: 404, code: 'not_found' });
  }
  expect(gateway.errors).toEqual([]);
});

test('WatchEvents streams only the events that the filters select, and heartbeats with a cursor if there are none', async () => {
  const filtered = watch({ types: ['order.cancelled'], orderId: 'filtered' });
  const empty = watch({ types: ['order.paid'] });
  for (const orderId of ['other', 'filtered']) await cancelNewOrder(gateway, orderId);
  expect(orderIdOf(await nextEvent(filtered))).toBe('filtered');
  const { event, cursor } = await empty.next();
  expect(event).toBeUndefined();
  expect(cursor).not.toBe('');
});

test('WatchEvents rejects a stream above the limit of a merchant until one of the open streams ends', async () => {
  const limited = await runGateway();
  await cancelNewOrder(limited, 'limit');
  const streams = Array.from({ length: eventWatchLimits.streamsPerMerchant }, () => watch({}, limited));
  for (const stream of streams) await nextEvent(stream);
  expect(await rpcErrorOf(watch({}, limited).next())).toMatchObject({
    code: Code.ResourceExhausted,
    reason: 'rate_limited',
  });
  streams[0]?.end();
  await expect.poll(() => nextEvent(watch({}, limited)).then(orderIdOf, () => undefined)).toBe('limit');
});

test('a stream ends with UNAVAILABLE when the gateway stops', async () => {
  const stopping = await runGateway();
  await cancelNewOrder(stopping, 'stopping');
  const stream = watch({}, stopping);
  await nextEvent(stream);
  const ended = rpcErrorOf(stream.next());
  await stopping.close();
  expect(await ended).toMatchObject({ code: Code.Unavailable });
});

test('after the merchant is disabled, a stream ends with UNAUTHENTICATED, at the latest after one more heartbeat', async () => {
  const disabling = await runGateway();
  await cancelNewOrder(disabling, 'revoked');
  const stream = watch({}, disabling);
  await nextEvent(stream);
  await disabling.accounts.disable(disabling.credentials.clientId);
  const error = await stream
    .next()
    .then(() => stream.next())
    .catch((reason) => ConnectError.from(reason));
  expect(error).toMatchObject({ code: Code.Unauthenticated });
});
