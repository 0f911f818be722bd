import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import { expect, test } from 'vitest';
import { frame, openSession, type RawCall, sendCall } from './grpc-call.ts';
import { credentials, runGrpcListener } from './grpc-listeners.ts';
import { credentialHeaders, orderMessage } from './running-gateway.ts';

const headers = { 'content-type': 'application/grpc', ...credentialHeaders(credentials) };

function call(order: MessageInitShape<typeof CreateOrderRequestSchema>): RawCall {
  const data = toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, order));
  return { headers, pieces: [frame(data)], ends: true };
}

/** The properties in which a stream still holds an object. */
function heldBy(stream: ServerHttp2Stream): string[] {
  const held = Reflect.ownKeys(stream).filter((key) => {
    const value = Reflect.get(stream, key);
    return typeof value === 'object' && value !== null;
  });
  return held.map(String);
}

// Node.js keeps a closed stream until the next full collection, so what it holds is what a call leaves (decision 014).
test('a call that is over leaves nothing on its stream', async () => {
  const streams: ServerHttp2Stream[] = [];
  const keep = (message: unknown) => {
    streams.push((message as { stream: ServerHttp2Stream }).stream);
  };
  subscribe('http2.server.stream.start', keep);
  const listener = await runGrpcListener();
  const session = openSession(listener.port);
  try {
    const calls = {
      unauthenticated: { ...call(orderMessage('leaves-3')), headers: { ...headers, 'x-client-secret': 'wrong' } },
      invalid: call({ ...orderMessage('leaves-2'), orderCurrency: 'no currency' }),
      created: call(orderMessage('leaves-1')),
      replayed: call(orderMessage('leaves-1')),
    };
    const statuses: unknown[] = [];
    for (const one of Object.values(calls)) statuses.push((await sendCall(session, one)).trailers['grpc-status']);
    expect(statuses).toEqual(['16', '3', '0', '0']);
    expect(streams).toHaveLength(statuses.length);
    await expect.poll(() => streams.map(heldBy)).toEqual(statuses.map(() => []));
  } finally {
    unsubscribe('http2.server.stream.start', keep);
    session.close();
    await listener.close();
  }
});
