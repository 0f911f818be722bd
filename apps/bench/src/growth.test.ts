import { createServer, type ServerHttp2Stream } from 'node:http2';
import { createMigratedDatabase } from '@gateway/postgres/testing/migrated-database';
import { expect, onTestFinished, test } from 'vitest';
import { createMerchant } from './contenders.ts';
import { sendToAll } from './growth.ts';

test('answers without an order in the database do not count', async () => {
  const postgres = await createMigratedDatabase();
  onTestFinished(() => postgres.drop());
  const merchant = await createMerchant(postgres.url, 'Shop');
  let answers = 0;
  const server = createServer().on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.resume().once('end', () => {
      answers += 1;
      stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.end(Buffer.alloc(5));
    });
  });
  onTestFinished(() => void server.close());
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(Object(server.address()).port));
  });
  const result = await sendToAll([port], { databaseUrl: postgres.url, merchant }, 1, 'run');
  expect(answers).toBeGreaterThan(0);
  expect(result.answers).toBe(0);
}, 60_000);
