import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  clientPreface,
  dataFrame,
  flags,
  frameTypes,
  headerBlock,
  http2Frame,
  pingFrame,
  resetFrame,
  settingsFrame,
  streamsOf,
  windowUpdateFrame,
} from '../../../../tools/http2-frames.ts';
import { lengthPrefixed, orderData } from '../helpers/grpc/grpc-call.ts';
import type { ServerReport } from '../helpers/grpc/grpc-server-process.ts';
import { makeCalls } from '../helpers/grpc/grpc-servers.ts';
import { grpcTls } from '../helpers/grpc/grpc-tls.ts';
import {
  beginFrame,
  callFields,
  callFrames,
  headersFrame,
  isFrame,
  openRawClient,
  requestFields,
  within,
} from '../helpers/grpc/raw-client.ts';

// Floods of frames that make the gateway's code open streams, read data or send resets. The calls of other clients must
// still succeed. Node.js limits all other frames. http2-bounds.test.ts tests the gateway's tighter limits.

/** Each attack lasts `attackMs` and uses `attackers` connections at a time, each for at most `connectionMs`. */
const attackMs = grpcTls ? 500 : 100;
const attackers = grpcTls ? 8 : 3;
const connectionMs = attackMs / 2;

/**
 * The maximum resident memory of the process, in bytes. When all attacks ran four times as long, the process used at
 * most 540 MiB.
 */
const rssMax = 768 * 2 ** 20;

/** The number of requests or frames on one connection. */
const floodLength = 2_000;

let server: ChildProcess;
let stderr: Promise<string>;
let port: number;

beforeAll(async () => {
  const path = fileURLToPath(new URL('../helpers/grpc/grpc-server-process.ts', import.meta.url));
  const certificate = grpcTls ? [JSON.stringify({ cert: grpcTls.cert, key: grpcTls.key })] : [];
  server = fork(path, [JSON.stringify({ drainTimeoutMs: 500 }), ...certificate], { silent: true });
  stderr = text(server.stderr as NodeJS.ReadableStream);
  [{ port }] = await once(server, 'message');
});

afterAll(async () => {
  const closed = once(server, 'exit');
  server.send('stop');
  expect(await closed).toEqual([0, null]);
  // Connect reports failures to send on standard error.
  expect(await stderr).toBe('');
});

const eachStream = (make: (streamId: number) => readonly Uint8Array[]) => streamsOf(floodLength, make);
const repeated = (first: Uint8Array, again: Uint8Array) => Buffer.concat([first, ...Array(floodLength).fill(again)]);

const withLength = (streamId: number, length: number) =>
  headersFrame(streamId, { ...requestFields, 'content-length': String(length) }, 0);
const noWindow = settingsFrame([[4, 0]]);

/** The attacks, and the bytes that each connection sends after its preface. */
const attacks: readonly (readonly [name: string, sent: Uint8Array])[] = [
  ['rapid resets of complete requests', eachStream((id) => [headersFrame(id), resetFrame(id)])],
  ['rapid resets of incomplete requests', eachStream((id) => [beginFrame(id), resetFrame(id)])],
  ['resets provoked by window updates of 0', eachStream((id) => [beginFrame(id), windowUpdateFrame(id, 0)])],
  ['resets provoked by DATA after the end', eachStream((id) => [headersFrame(id), dataFrame(id, Buffer.alloc(1))])],
  [
    'resets provoked by bodies that are too long',
    eachStream((id) => [withLength(id, 1), dataFrame(id, Buffer.alloc(2))]),
  ],
  [
    'resets provoked by bodies that are too short',
    eachStream((id) => [withLength(id, 2), dataFrame(id, Buffer.alloc(1))]),
  ],
  ['more streams than are allowed', eachStream((id) => [beginFrame(id)])],
  ['complete requests without credentials', eachStream((id) => [headersFrame(id)])],
  ['DATA without a byte', repeated(beginFrame(1), dataFrame(1, Buffer.alloc(0), 0))],
  ['DATA with only padding', repeated(beginFrame(1), dataFrame(1, Buffer.from([1, 0]), flags.padded))],
  ['responses that the flow-control window blocks', Buffer.concat([noWindow, eachStream((id) => [headersFrame(id)])])],
];

/** Repeats an attack on new connections for `attackMs`. */
async function attack(sent: Uint8Array, { isReading }: { readonly isReading: boolean }): Promise<void> {
  const bytes = Buffer.concat([clientPreface, sent]);
  const endsAt = performance.now() + attackMs;
  const attackOnce = async () => {
    const client = await openRawClient(port);
    if (!isReading) client.socket.pause();
    client.socket.write(bytes);
    await within(connectionMs, client.closed);
    client.socket.destroy();
  };
  await inParallel(attackers, async () => {
    while (performance.now() < endsAt) await attackOnce();
  });
}

function inParallel<Value>(count: number, run: (index: number) => Promise<Value>): Promise<Value[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => run(index)));
}

async function report(): Promise<ServerReport> {
  server.send('report');
  const [serverReport] = await once(server, 'message');
  return serverReport;
}

/**
 * Runs an attack while another client makes calls. These calls, and those of a new client after the attack, must
 * succeed, without an error in the log.
 */
async function whileAnotherClientCalls(run: () => Promise<unknown>): Promise<void> {
  await report();
  const endCalls = makeCalls(port);
  await run();
  const endNewCalls = makeCalls(port);
  const failed = [await endCalls(), await endNewCalls()];
  const { errors, rssMax: used } = await report();
  expect(failed).toEqual([[], []]);
  expect(errors).toBe(0);
  expect(used).toBeLessThan(rssMax);
}

test.each(attacks)('serves other clients during a flood of %s', async (_name, sent) => {
  await whileAnotherClientCalls(() => attack(sent, { isReading: true }));
});

test('serves other clients during a flood of requests by clients that do not read', async () => {
  await whileAnotherClientCalls(() =>
    attack(
      eachStream((id) => [headersFrame(id)]),
      { isReading: false },
    ),
  );
});

/** Returns two calls: one in ordinary frames, and one whose header block ends in one-byte frames. */
function twoCalls(): Buffer {
  const message = lengthPrefixed(orderData('cut'));
  const block = headerBlock(callFields);
  const lastBytes = Array.from(block.subarray(-7), (byte, index) =>
    http2Frame(frameTypes.continuation, index === 6 ? flags.endHeaders : 0, 3, Buffer.from([byte])),
  );
  return Buffer.concat([
    clientPreface,
    callFrames(1, 'cut'),
    pingFrame(),
    // nghttp2 accepts at most eight CONTINUATION frames.
    http2Frame(frameTypes.headers, 0, 3, block.subarray(0, -7)),
    ...lastBytes,
    dataFrame(3, message),
  ]);
}

/**
 * The slow tests, over TLS, cut at every offset. A frame header has nine bytes, so cuts at every fifth offset split
 * each header.
 */
const cutEvery = grpcTls ? 1 : 5;

test('responds to calls whose frames are split at any offset, and survives connections that end there', async () => {
  const bytes = twoCalls();
  let cuts = 0;
  const nextCut = () => ++cuts * cutEvery;
  await whileAnotherClientCalls(() =>
    inParallel(20, async () => {
      for (let cut = nextCut(); cut < bytes.length; cut = nextCut()) {
        const [first, second] = [bytes.subarray(0, cut), bytes.subarray(cut)];
        const [client, ended] = await inParallel(2, () => openRawClient(port));
        if (client === undefined || ended === undefined) throw new Error('no connection');
        client.socket.write(first);
        ended.socket.end(first);
        await setImmediate();
        client.socket.write(second);
        // Only a successful response has DATA.
        for (const streamId of [1, 3])
          expect(await client.firstFrame(isFrame(frameTypes.data, streamId))).toBeDefined();
        for (const { socket } of [client, ended]) socket.destroy();
      }
    }),
  );
});

test('survives malformed frames and random bytes', async () => {
  const anyFrame = fc
    .tuple(
      fc.nat({ max: 10 }),
      fc.nat({ max: 255 }),
      fc.constantFrom(0, 1, 1, 3, 5, 2),
      fc.uint8Array({ maxLength: 40 }),
    )
    .map(([type, frameFlags, streamId, payload]) => http2Frame(type, frameFlags, streamId, payload));
  const malformed = fc.oneof(
    fc.array(anyFrame, { maxLength: 30 }).map((frames) => Buffer.concat([clientPreface, headersFrame(1), ...frames])),
    fc.uint8Array({ maxLength: 300 }).map((garbage) => Buffer.concat([clientPreface, garbage])),
    fc.uint8Array({ maxLength: 300 }).map((garbage) => Buffer.from(garbage)),
  );
  const samples = fc.sample(malformed, { seed: 20_261_122, numRuns: 1_000 });
  await whileAnotherClientCalls(() =>
    inParallel(20, async () => {
      for (let sample = samples.pop(); sample !== undefined; sample = samples.pop()) {
        const client = await openRawClient(port);
        client.socket.end(sample);
        await within(connectionMs, client.closed);
        client.socket.destroy();
      }
    }),
  );
});
