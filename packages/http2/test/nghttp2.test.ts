import { afterAll, beforeAll, expect, test } from 'vitest';
import { frame, frameTypes } from '../src/frames.ts';
import { connectionSequences } from './connection-sequences.ts';
import { frameSequences } from './frame-sequences.ts';
import { farewellCode, isFarewell, nameOf, openRawClient, type RawClient } from './raw-client.ts';
import { requestSequences } from './request-sequences.ts';
import { type Peer, runNghttp2, runOurs } from './verdict-peers.ts';

let ours: Peer;
let nghttp2: Peer;

beforeAll(async () => {
  [ours, nghttp2] = await Promise.all([runOurs(), runNghttp2()]);
});

afterAll(async () => {
  await Promise.all([ours.close(), nghttp2.close()]);
});

/** What came of each stream and of the connection, in words. A connection that bade farewell is meant to have ended. */
function verdictOf(client: RawClient): string {
  const words = new Map<number, string>();
  for (const { type, streamId, payload } of client.frames) {
    if (type === frameTypes.headers) words.set(streamId, '200');
    if (type === frameTypes.resetStream) words.set(streamId, nameOf(payload.readUInt32BE(0)));
  }
  const ofStreams = [...words].sort(([one], [other]) => one - other).map(([id, word]) => `${id}: ${word}`);
  const pongs = client.frames.filter((one) => one.type === frameTypes.ping && !isProbe(one));
  const farewells = client.frames.filter(isFarewell).map((one) => `goaway ${farewellCode(one)}`);
  const all = [...ofStreams, ...pongs.map(({ payload }) => `pong ${payload}`), ...farewells];
  return all.length === 0 ? 'nothing' : all.join(', ');
}

const probes = [Buffer.from('a probe.'), Buffer.from('another.')];

function isProbe({ type, payload }: { type: number; payload: Buffer }): boolean {
  return type === frameTypes.ping && probes.some((probe) => probe.equals(payload));
}

/** Sends a sequence, and waits until what is due has come and the connection has ended or answers a ping twice after that. */
async function judge({ port }: Peer, sent: readonly Uint8Array[], due: string): Promise<string> {
  const client = await openRawClient(port);
  try {
    client.send(Buffer.concat(sent));
    for (const [index, probe] of probes.entries()) {
      if (!client.isClosed()) client.send(frame(frameTypes.ping, 0, 0, probe));
      const isOver = () => client.isClosed() || client.frames.filter(isProbe).length > index;
      await client.until(() => isOver() && verdictOf(client) === due);
    }
    if (client.isClosed() !== due.includes('goaway'))
      return `${verdictOf(client)}, and ${client.isClosed() ? '' : 'not '}closed`;
    return verdictOf(client);
  } finally {
    client.socket.destroy();
  }
}

test.concurrent.each([...connectionSequences, ...frameSequences, ...requestSequences])(
  'gives the verdict of nghttp2, or a better one, on $name',
  async ({ sent, verdict }) => {
    const due = typeof verdict === 'string' ? { ours: verdict, nghttp2: verdict } : verdict;
    const [one, other] = await Promise.all([judge(ours, sent, due.ours), judge(nghttp2, sent, due.nghttp2)]);
    expect({ ours: one, nghttp2: other }).toEqual({ ours: due.ours, nghttp2: due.nghttp2 });
    expect(ours.faults).toEqual([]);
  },
);
