import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultWindow, flags, frame, frameTypes, preface, settingIds, settingsFrame } from '../src/frames.ts';
import { ReceiveWindow } from '../src/receive-window.ts';
import { dataFrame, headersFrame, hello, isAnswerOf, openRawClient, type RawClient } from './raw-client.ts';
import { runServer } from './running-server.ts';
import { bytes, get, opening, setting, windowUpdate } from './sequence.ts';

const seed = 20_261_122;
const body = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 251));
const headers = [':status', '200'];
const trailers = ['grpc-status', '0'];

function bodyOf(client: RawClient, streamId: number): Buffer {
  const pieces = client.frames.filter((one) => one.type === frameTypes.data && one.streamId === streamId);
  return Buffer.concat(pieces.map(({ payload }) => payload));
}

const isTrailersOf = (streamId: number) => (one: { type: number; flags: number; streamId: number }) =>
  one.type === frameTypes.headers && one.streamId === streamId && (one.flags & flags.endStream) !== 0;

let pings = 0;

/** Waits until all that was sent before has been answered. */
async function settled(client: RawClient): Promise<void> {
  pings += 1;
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(pings);
  client.send(frame(frameTypes.ping, 0, 0, payload));
  await client.frame((one) => one.type === frameTypes.ping && one.payload.equals(payload));
}

/** A client's windows may be opened and, for streams, set: also to less than was already sent. */
const step = fc.oneof(
  fc.record({ of: fc.constantFrom('connection', 'stream'), bytes: fc.constantFrom(1, 9, 1_000, 16_384, 70_000) }),
  fc.record({ of: fc.constant('setting'), bytes: fc.constantFrom(0, 1, 500, 30_000, defaultWindow, 150_000) }),
);

test("sends at every time as much of a body as a client's windows let, whichever way they change, and its trailers last", async () => {
  const server = await runServer({ answer: () => ({ headers, body, trailers }) });
  const sequences = fc.sample(fc.array(step, { minLength: 5, maxLength: 25 }), { seed, numRuns: 60 });
  try {
    for (const steps of sequences) {
      const client = await openRawClient(server.port);
      client.send(hello, headersFrame(1, get));
      let [ofStream, ofConnection, initial, due] = [defaultWindow, defaultWindow, defaultWindow, defaultWindow];
      for (const { of, bytes: count } of [
        ...steps,
        { of: 'stream', bytes: 1 << 30 },
        { of: 'connection', bytes: 1 << 30 },
      ]) {
        if (of === 'connection') ofConnection += count;
        else if (of === 'stream') ofStream += count;
        else [ofStream, initial] = [ofStream + count - initial, count];
        client.send(
          of === 'setting'
            ? setting(settingIds.initialWindowSize, count)
            : windowUpdate(of === 'stream' ? 1 : 0, count),
        );
        await settled(client);
        due = Math.max(due, Math.min(body.length, ofStream, ofConnection));
        expect(bodyOf(client, 1).length).toBe(due);
        expect(client.frames.some(isTrailersOf(1))).toBe(due === body.length);
      }
      expect(bodyOf(client, 1).equals(body)).toBe(true);
      client.socket.destroy();
    }
    expect(server.faults).toEqual([]);
  } finally {
    await server.close();
  }
});

test('sends what has no body at once, with windows of nothing or less', async () => {
  const server = await runServer({
    answer: ({ fields }) => (fields.includes('/there') ? { headers, body } : { headers, trailers }),
  });
  try {
    const client = await openRawClient(server.port);
    client.send(hello, headersFrame(1), setting(settingIds.initialWindowSize, 0), headersFrame(3, get));
    await client.frame(isTrailersOf(3));
    await settled(client);
    expect(bodyOf(client, 1).length).toBe(defaultWindow);
    client.socket.destroy();
  } finally {
    await server.close();
  }
});

test('shares the window of a connection between streams, and lets none wait that may go on', async () => {
  const server = await runServer({ answer: () => ({ headers, body }) });
  try {
    const client = await openRawClient(server.port);
    client.send(
      preface,
      settingsFrame([[settingIds.initialWindowSize, body.length]]),
      headersFrame(1, get),
      headersFrame(3, get),
    );
    await settled(client);
    expect([bodyOf(client, 1).length, bodyOf(client, 3).length]).toEqual([defaultWindow, 0]);
    client.send(frame(frameTypes.resetStream, 0, 1, Buffer.alloc(4)), windowUpdate(0, body.length));
    await settled(client);
    expect(bodyOf(client, 3).equals(body)).toBe(true);
    client.socket.destroy();
  } finally {
    await server.close();
  }
});

test.each([0, 255])(
  'takes a request far larger than the windows, with %i bytes of padding in each frame',
  async (padding) => {
    const server = await runServer({ limits: { streamWindow: 65_535, connectionWindow: 65_536 } });
    const piece = Buffer.alloc(padding === 0 ? 16_000 : 40, 'x');
    const payload = padding === 0 ? piece : Buffer.concat([bytes(padding), piece, Buffer.alloc(padding)]);
    const count = 50 * Math.ceil(16_000 / payload.length);
    const opened = (client: RawClient, streamId: number) =>
      client.frames
        .filter((one) => one.type === frameTypes.windowUpdate && one.streamId === streamId)
        .reduce((sum, one) => sum + one.payload.readUInt32BE(0), defaultWindow);
    try {
      const client = await openRawClient(server.port);
      client.send(hello, opening(1));
      for (let sent = 0; sent < count; sent += 1) {
        const needed = (sent + 1) * payload.length;
        expect(await client.until(() => Math.min(opened(client, 0), opened(client, 1)) >= needed)).toBe(true);
        client.send(
          dataFrame(1, payload, (padding === 0 ? 0 : flags.padded) | (sent === count - 1 ? flags.endStream : 0)),
        );
      }
      await client.frame(isAnswerOf(1));
      expect(server.requests[0]?.body.length).toBe(count * piece.length);
      client.socket.destroy();
    } finally {
      await server.close();
    }
  },
);

test('tells a client of room before the rest that is held makes it wait, and not for every byte', () => {
  const window = new ReceiveWindow(1_000);
  expect(window.take(100)).toBe(true);
  expect([window.release(50), window.release(50)]).toEqual([0, 0]);
  expect(window.take(900)).toBe(true);
  expect([window.release(1), window.held]).toEqual([101, 899]);
  expect(window.take(102)).toBe(false);
});
