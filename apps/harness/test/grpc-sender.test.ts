import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createGrpcSender } from '../src/load/grpc-sender.ts';

test('a call without a response in time is a timeout, not a reset', async () => {
  const server = createServer().on('stream', (stream) => stream.on('error', () => {}));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sender = createGrpcSender(`127.0.0.1:${(server.address() as AddressInfo).port}`, 1, 50);
  onTestFinished(() => {
    sender.close();
    server.close();
  });
  const about = { protocol: 'grpc', operation: 'CreateOrder', method: 'POST', path: '/' } as const;
  const call = { ...about, headers: {}, order: undefined, expected: [] };
  expect(await sender.send({ ...call, body: new Uint8Array() })).toMatchObject({ outcome: 'no response: timeout' });
});
