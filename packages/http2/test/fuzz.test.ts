import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flags, frame, frameTypes, preface, settingsFrame } from '../src/frames.ts';
import { encodeHeaders } from '../src/header-encoder.ts';
import type { ServerStream } from '../src/server-stream.ts';
import { connectionSequences } from './connection-sequences.ts';
import { frameSequences } from './frame-sequences.ts';
import { dataFrame, headersFrame, hello, isAnswerOf, isFarewell, openRawClient } from './raw-client.ts';
import { requestSequences } from './request-sequences.ts';
import { runServer } from './running-server.ts';
import { get, opening, ping, reset, setting, windowUpdate } from './sequence.ts';

const seed = 20_261_122;
const sequencesCount = 3_000;
const atOnce = 25;

const streamId = fc.constantFrom(0, 1, 1, 3, 3, 5, 7, 2);

/** Frames as they may be, and such of any type with any content. */
const anyFrame = fc.oneof(
  streamId.map((id) => headersFrame(Math.max(1, id), get)),
  streamId.map((id) => opening(Math.max(1, id))),
  fc.tuple(streamId, fc.uint8Array({ maxLength: 300 }), fc.nat(1)).map(([id, data, set]) => dataFrame(id, data, set)),
  streamId.map((id) => headersFrame(Math.max(1, id), ['x-sum', '1'])),
  streamId.map(reset),
  fc.tuple(streamId, fc.constantFrom(0, 1, 100_000, 0x7fff_ffff)).map(([id, by]) => windowUpdate(id, by)),
  fc.tuple(fc.nat(7), fc.constantFrom(0, 1, 100, 16_384, 0x7fff_ffff)).map(([id, value]) => setting(id, value)),
  fc.constant(ping()),
  fc
    .tuple(fc.nat(11), fc.nat(255), streamId, fc.uint8Array({ maxLength: 60 }))
    .map(([type, set, id, payload]) => frame(type, set, id, payload)),
  fc
    .tuple(streamId, fc.uint8Array({ maxLength: 60 }))
    .map(([id, coded]) => frame(frameTypes.headers, flags.endHeaders, id, Buffer.concat([encodeHeaders(get), coded]))),
);

const known = [...connectionSequences, ...frameSequences, ...requestSequences].map(({ sent }) => Buffer.concat(sent));
const begun = fc.constantFrom(
  [],
  [opening(1), opening(3)],
  [headersFrame(1, get), opening(3, [...get, 'content-length', '300']), headersFrame(5, get)],
  [headersFrame(1), opening(3), ping(), setting(4, 10), windowUpdate(1, 20), dataFrame(3, Buffer.from('body'), 0)],
);
const valid = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(begun, fc.array(anyFrame, { maxLength: 12 }))
      .map(([first, frames]) => Buffer.concat([hello, ...first, ...frames])),
  },
  fc.constantFrom(...known.filter((bytes) => bytes.length < 5_000)),
);

/** What to do at a place, which is a fraction of the length. */
const mutation = fc.record({
  kind: fc.constantFrom('flip', 'set', 'cut', 'twice', 'drop'),
  place: fc.double({ min: 0, max: 1, noNaN: true }),
  byte: fc.nat(255),
  length: fc.nat(30),
});

interface Mutation {
  readonly kind: string;
  readonly place: number;
  readonly byte: number;
  readonly length: number;
}

/** The preface and the first settings mostly stay, as nothing is read after a wrong one. */
function mutated(bytes: Buffer, { kind, place, byte, length }: Mutation): Buffer {
  const from = Math.min(preface.length + settingsFrame([]).length, bytes.length);
  const at = byte % 16 === 5 ? 0 : from + Math.floor(place * Math.max(0, bytes.length - from - 1));
  if (kind === 'cut') return bytes.subarray(0, at);
  if (kind === 'drop') return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
  if (kind === 'twice') return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
  const changed = Buffer.from(bytes);
  if (at < changed.length) changed[at] = kind === 'set' ? byte : (changed[at] ?? 0) ^ (1 << (byte % 8));
  return changed;
}

const sequence = fc.record({
  bytes: fc.tuple(valid, fc.array(mutation, { maxLength: 2 })).map(([bytes, all]) => all.reduce(mutated, bytes)),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
  end: fc.constantFrom('end', 'end', 'end', 'tear', 'destroy'),
  isReading: fc.boolean(),
});

/** A service that does all that it may, and should not, at any time. */
function misbehave(stream: ServerStream): void {
  const turn = (stream.id + stream.fields.length) % 9;
  const answer = { headers: [':status', '200'], body: Buffer.alloc(turn * 20_000), trailers: ['x', 'y'] };
  if (turn === 1) stream.respond(answer);
  if (turn === 2) stream.reset(turn);
  if (turn === 3) setImmediate(() => stream.respond(answer));
  if (turn === 4) queueMicrotask(() => stream.reset(turn));
  if (turn === 5) setImmediate(() => stream.closeConnection());
  stream.release(turn);
}

test(`outlives ${sequencesCount} sequences of frames, changed, cut and torn, and serves another connection meanwhile`, async () => {
  const closedOf = new Map<ServerStream, number>();
  const server = await runServer({
    limits: { connectionsMax: 1_000, checkEveryMs: 20, lingerMs: 100 },
    answer: () => ({ headers: [':status', '200'], body: Buffer.alloc(100_000) }),
    onOpen: (stream) => stream.fields.includes('/there') || misbehave(stream),
    onClose: (_code, stream) => closedOf.set(stream, (closedOf.get(stream) ?? 0) + 1),
  });
  const sequences = fc.sample(sequence, { seed, numRuns: sequencesCount });
  const other = await openRawClient(server.port);
  other.send(hello, setting(4, 1_000_000), windowUpdate(0, 1_000_000_000));
  try {
    for (let at = 0; at < sequencesCount; at += atOnce) {
      const served = 2 * (at / atOnce) + 1;
      other.send(headersFrame(served));
      const ended = sequences.slice(at, at + atOnce).map(async ({ bytes, cuts, end, isReading }) => {
        const client = await openRawClient(server.port);
        if (!isReading) client.socket.pause();
        const places = [
          0,
          ...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((one, next) => one - next),
          bytes.length,
        ];
        for (const [index, place] of places.slice(1).entries()) {
          client.send(bytes.subarray(places[index], place));
          await new Promise((resolve) => setImmediate(resolve));
        }
        client.socket.resume();
        // Else most connections would be torn before anything is read from them. Before the preface the server says nothing.
        if (isReading && bytes.length >= preface.length)
          await client.until(() => client.frames.length > 0 || client.isClosed());
        if (end === 'end') client.socket.end();
        else if (end === 'tear') client.socket.resetAndDestroy();
        else client.socket.destroy();
        await client.closed;
      });
      await Promise.all(ended);
      await other.frame(isAnswerOf(served));
      expect(server.faults).toEqual([]);
    }
    expect(other.frames.some(isFarewell)).toBe(false);
    other.socket.destroy();
    // Every stream is told of its end once.
    await expect.poll(() => closedOf.size).toBe(server.opened.length);
    expect(new Set(closedOf.values())).toEqual(new Set([1]));
    // Else the sequences say nothing: many of them have requests.
    expect(server.opened.length).toBeGreaterThan(sequencesCount / 6);
  } finally {
    await server.close();
  }
});
