import { create, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import { expect, test } from 'vitest';
import { http2Limits } from '../src/limits.ts';
import { credentials } from './fixed-deps.ts';
import { frame, openSession, sendCall } from './grpc-call.ts';
import { runGrpcServer } from './grpc-servers.ts';
import { credentialHeaders, orderMessage } from './running-gateway.ts';

const headers = { 'content-type': 'application/grpc', ...credentialHeaders(credentials) };

test('a client that gives up all of its calls at once keeps its connection, and the call that it waits for', async () => {
  const listener = await runGrpcServer();
  const session = openSession(listener.port);
  try {
    const data = frame(toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, orderMessage('kept'))));
    const calls = Array.from({ length: http2Limits.maxConcurrentStreams }, () =>
      sendCall(session, { headers, pieces: [data], ends: false, cancels: true }),
    );
    const kept = sendCall(session, { headers, pieces: [data], ends: true });
    await Promise.all(calls);
    expect((await kept).trailers['grpc-status']).toBe('0');
    const next = await sendCall(session, { headers, pieces: [data], ends: true });
    expect([next.trailers['grpc-status'], next.headers['idempotent-replayed']]).toEqual(['0', 'true']);
  } finally {
    session.close();
    await listener.close();
  }
});
