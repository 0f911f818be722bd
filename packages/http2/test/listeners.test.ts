import { expect, test } from 'vitest';
import { errorCodes, flags, frameTypes } from '../src/frames.ts';
import type { ServerStream } from '../src/server-stream.ts';
import {
  dataFrame,
  farewellCode,
  headersFrame,
  hello,
  isAnswerOf,
  isFarewell,
  nameOf,
  openRawClient,
} from './raw-client.ts';
import { runServer, type ServerOptions } from './running-server.ts';
import { bytes, end, get, opening, reset } from './sequence.ts';

const answer = { headers: [':status', '200'], body: Buffer.from('here') };

async function withServer(
  options: ServerOptions,
  body: (server: Awaited<ReturnType<typeof runServer>>) => Promise<void>,
): Promise<void> {
  const server = await runServer({ ...options, limits: { drainTimeoutMs: 100, ...options.limits } });
  try {
    await body(server);
  } finally {
    await server.close();
  }
}

async function isServing(port: number): Promise<boolean> {
  const client = await openRawClient(port);
  client.send(hello, headersFrame(1, get));
  const come = await client.until(() => client.frames.some(isAnswerOf(1)) || client.isClosed());
  const served = come && client.frames.some(isAnswerOf(1));
  client.socket.destroy();
  return served;
}

const fail = () => {
  throw new Error('a fault of a listener');
};

const isHeld = (stream: ServerStream) => stream.fields.includes('/there');

test.each([
  ['the client gives it up', (client: Awaited<ReturnType<typeof openRawClient>>) => client.send(reset(1))],
  ['the socket is torn', (client: Awaited<ReturnType<typeof openRawClient>>) => client.socket.resetAndDestroy()],
  ['the client ends', (client: Awaited<ReturnType<typeof openRawClient>>) => client.socket.end()],
  ['the connection fails', (client: Awaited<ReturnType<typeof openRawClient>>) => client.send(dataFrame(0, bytes(1)))],
  ['its time is over', () => {}],
])('outlives a listener that throws at the end of a stream, when %s', async (_name, give) => {
  const onClose = (_code: number, stream: ServerStream) => isHeld(stream) && fail();
  const limits = { requestTimeoutMs: 300 };
  await withServer(
    { limits, onClose, answer: ({ fields }) => (fields.includes('/there') ? undefined : answer) },
    async (server) => {
      const client = await openRawClient(server.port);
      client.send(hello, headersFrame(1), headersFrame(3));
      await expect.poll(() => server.opened.length).toBe(2);
      give(client);
      await expect.poll(() => server.closes.length).toBeGreaterThan(0);
      expect(await isServing(server.port)).toBe(true);
      client.socket.destroy();
      await expect.poll(() => server.closes.length).toBe(3);
      expect(server.faults).toHaveLength(2);
    },
  );
});

test('ends the connection on which a listener throws, tells of it, and goes on with others', async () => {
  await withServer({ onOpen: (stream) => isHeld(stream) && fail() }, async (server) => {
    const client = await openRawClient(server.port);
    client.send(hello, opening(1, get), headersFrame(3));
    expect(farewellCode(await client.frame(isFarewell))).toBe('internalError');
    await client.closed;
    expect(server.closes).toEqual([errorCodes.cancel]);
    expect(await isServing(server.port)).toBe(true);
    expect(server.faults).toHaveLength(1);
  });
});

test('tells a listener of the end of a stream that it gave up before it listened', async () => {
  await withServer({ onOpen: (stream) => stream.reset(errorCodes.refusedStream) }, async (server) => {
    const client = await openRawClient(server.port);
    client.send(hello, headersFrame(1), opening(3));
    const { payload } = await client.frame((one) => one.type === frameTypes.resetStream && one.streamId === 3);
    expect(nameOf(payload.readUInt32BE(0))).toBe('refusedStream');
    expect([server.closes, server.requests]).toEqual([[errorCodes.refusedStream, errorCodes.refusedStream], []]);
    client.socket.destroy();
  });
});

test('takes the first answer, at any time, and drops what is told to a stream after that', async () => {
  const onOpen = (stream: ServerStream) => {
    stream.respond(answer);
    stream.respond({ headers: [':status', '500'] });
  };
  const onClose = (_code: number, stream: ServerStream) => {
    stream.respond({ headers: [':status', '500'] });
    stream.reset(errorCodes.internalError);
    stream.release(1_000_000);
  };
  await withServer({ onOpen, onClose }, async (server) => {
    const client = await openRawClient(server.port);
    client.send(
      hello,
      opening(1),
      dataFrame(1, Buffer.from('a body'), 0),
      dataFrame(1, Buffer.from('a body')),
      headersFrame(3),
    );
    await client.frame((one) => one.streamId === 3 && (one.flags & end) !== 0);
    const told = client.frames.filter(({ streamId }) => streamId > 0).map(({ type, streamId }) => [type, streamId]);
    expect(told).toEqual(
      [1, 3].flatMap((id) => [
        [frameTypes.headers, id],
        [frameTypes.data, id],
      ]),
    );
    expect([server.closes, server.requests]).toEqual([[0, 0], []]);
    client.socket.destroy();
    expect(server.faults).toEqual([]);
  });
});

test.each([
  ['no body', undefined],
  ['an empty body', Buffer.alloc(0)],
])('ends a stream whose answer has %s', async (_name, body) => {
  await withServer({ answer: () => ({ headers: [':status', '204'], body }) }, async ({ port }) => {
    const client = await openRawClient(port);
    client.send(hello, headersFrame(1));
    expect((await client.frame(isAnswerOf(1))).flags).toBe(flags.endHeaders | flags.endStream);
    client.socket.destroy();
  });
});

test('tells a listener that a client gave up without a reason, or without an answer', async () => {
  await withServer({ answer: () => undefined }, async (server) => {
    const client = await openRawClient(server.port);
    const withoutReason = Buffer.from(reset(1));
    withoutReason.fill(0, 9);
    client.send(hello, headersFrame(1), withoutReason);
    await expect.poll(() => server.closes).toEqual([errorCodes.cancel]);
    client.socket.destroy();
  });
});
