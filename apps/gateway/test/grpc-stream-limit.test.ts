import { expect, onTestFinished, test } from 'vitest';
import { openSession, ordinaryCall, sendCall } from './grpc-call.ts';
import { runGrpcServer } from './grpc-servers.ts';

test('connections share the calls in flight, and get their share again when others end', async () => {
  const limits = { maxConcurrentStreams: 100, streamsOfAllSessions: 128, concurrentStreamsMin: 16 };
  const server = await runGrpcServer({ limits });
  onTestFinished(server.close);
  const open = (count: number) => Array.from({ length: count }, () => openSession(server.port));
  const limitsOf = (sessions: ReturnType<typeof open>) =>
    new Set(sessions.map(({ remoteSettings }) => remoteSettings.maxConcurrentStreams));

  const sessions = open(1);
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([100]));
  sessions.push(...open(2));
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([32]));
  sessions.push(...open(30));
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([16]));
  // A client that sends more at once queues it, and all succeed.
  const [first] = sessions;
  const calls = Array.from({ length: 200 }, (_, index) => first && sendCall(first, ordinaryCall(`order-${index}`)));
  const statuses = (await Promise.all(calls)).map((answer) => answer?.trailers['grpc-status']);
  expect(new Set(statuses)).toEqual(new Set(['0']));
  for (const session of sessions.splice(1)) session.close();
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([100]));
  first?.close();
});
