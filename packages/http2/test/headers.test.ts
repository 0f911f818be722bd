import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeaderDecoder } from '../src/header-decoder.ts';
import { tableBytesMax } from '../src/header-table.ts';
import { decodeHuffman } from '../src/huffman.ts';
import { fieldOf } from '../src/request-fields.ts';
import { limits, runServer } from './running-server.ts';

const seed = 20_261_122;

function decodeAll(...blocks: readonly string[]): string[][] {
  const decoder = new HeaderDecoder(limits);
  return blocks.map((block) => [...decoder.decode(Buffer.from(block, 'hex')).fields]);
}

const custom = ['custom-key', 'custom-value'];
const first = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com'];
const third = [':method', 'GET', ':scheme', 'https', ':path', '/index.html', ':authority', 'www.example.com'];

test.each([
  ['C.2.1', ['400a637573746f6d2d6b65790d637573746f6d2d686561646572'], [['custom-key', 'custom-header']]],
  ['C.2.2', ['040c2f73616d706c652f70617468'], [[':path', '/sample/path']]],
  ['C.2.3', ['100870617373776f726406736563726574'], [['password', 'secret']]],
  ['C.2.4', ['82'], [[':method', 'GET']]],
  [
    'C.3',
    [
      '828684410f7777772e6578616d706c652e636f6d',
      '828684be58086e6f2d6361636865',
      '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
    ],
    [first, [...first, 'cache-control', 'no-cache'], [...third, ...custom]],
  ],
  [
    'C.4',
    [
      '828684418cf1e3c2e5f23a6ba0ab90f4ff',
      '828684be5886a8eb10649cbf',
      '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
    ],
    [first, [...first, 'cache-control', 'no-cache'], [...third, ...custom]],
  ],
])('reads the examples of RFC 7541, %s', (_name, blocks, fields) => {
  expect(decodeAll(...blocks)).toEqual(fields);
});

test.each([
  ['an index that stands for nothing', '80'],
  ['an index beyond the tables', 'be'],
  ['an index without its end', 'ff'],
  ['a number that is too large', 'ffffffffff7f'],
  ['a name beyond its end', '400a6375'],
  ['a value that is left out', '04'],
  ['a change of the table after a field', '8220'],
  ['a third change of the table', '202020'],
  ['a table that is larger than was allowed', '3fe23f'],
  ['padding that is not ones', '048118'],
])('ends the connection at %s', (_name, block) => {
  expect(() => decodeAll(block)).toThrow('a header block has');
});

test('knows what is no Huffman code: an end within, padding that is not ones, or too much of it', () => {
  expect(decodeHuffman(Buffer.from('1f', 'hex'))).toBe('a');
  for (const wrong of ['18', '1fff', 'ffffffff', 'ffffffffff']) {
    expect([wrong, decodeHuffman(Buffer.from(wrong, 'hex'))]).toEqual([wrong, undefined]);
  }
});

test('forgets the oldest entries of the table, and all of them at one that does not fit', () => {
  const decoder = new HeaderDecoder(limits);
  const kept = (name: string, length: number) =>
    Buffer.concat([Buffer.from([0x40, name.length]), Buffer.from(name), lengthOf(length), Buffer.alloc(length, 'v')]);
  // Two of 2,000 bytes fit, with 32 more each; the third one drives the first out.
  decoder.decode(Buffer.concat([kept('one', 2_000), kept('two', 2_000)]));
  expect(decoder.decode(Buffer.from([0xbe, 0xbf])).fields.filter((_, at) => at % 2 === 0)).toEqual(['two', 'one']);
  decoder.decode(kept('three', 2_000));
  expect(decoder.decode(Buffer.from([0xbe, 0xbf])).fields.filter((_, at) => at % 2 === 0)).toEqual(['three', 'two']);
  decoder.decode(kept('large', tableBytesMax));
  expect(() => decoder.decode(Buffer.from([0xbe]))).toThrow('an index that stands for nothing');
});

test('keeps nothing of the entries that were driven out, nor of the blocks that were read', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const keptBytes = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const large = () => Buffer.concat([Buffer.from([0x40, 1, 97]), lengthOf(4_000), Buffer.alloc(4_000, 'v')]);
  const before = keptBytes();
  const decoders = Array.from({ length: 50 }, () => new HeaderDecoder(limits));
  for (let time = 0; time < 120; time += 1) for (const decoder of decoders) decoder.decode(large());
  expect((keptBytes() - before) / decoders.length).toBeLessThan(60_000);
  expect(decoders.map((decoder) => decoder.decode(Buffer.from([0xbe])).fields[0])).toEqual(decoders.map(() => 'a'));
});

test('reads a block to its end where its fields are too many or too large, and keeps none beyond the bound', () => {
  const decoder = new HeaderDecoder({ headerBytesMax: 100, headerPairsMax: 2 });
  expect(decoder.decode(Buffer.from('828684', 'hex'))).toMatchObject({ isTooLarge: true });
  expect(decoder.decode(Buffer.from('8286', 'hex'))).toMatchObject({ isTooLarge: false });
  const large = decoder.decode(Buffer.concat([Buffer.from([0x40, 1, 97, 100]), Buffer.alloc(100, 'v')]));
  expect(large).toEqual({ fields: [], isValid: true, isTooLarge: true });
  // What was too large is in the table all the same, as it is in the client's.
  expect(decoder.decode(Buffer.from('be', 'hex'))).toMatchObject({ isTooLarge: true });
});

/** A length as it stands before a string: seven bits, then seven more at a time. */
function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const rest = length - 127;
  return Buffer.from(rest < 128 ? [127, rest] : [127, (rest & 127) | 128, rest >> 7]);
}

const token = fc.stringMatching(/^[a-z][a-z0-9-]{0,30}$/).map((name) => `x-${name}`);

/** Every byte that a value may have, most often the common ones, and some values that fill the table at once. */
const value = fc.oneof(
  { weight: 8, arbitrary: fc.stringMatching(/^[!-~]([ -~]{0,60}[!-~])?$/) },
  fc.stringMatching(/^[!-~\x80-\xff][\t -~\x80-\xff]{0,60}[!-~\x80-\xff]$/),
  fc.constantFrom('v'.repeat(1_500), 'v'.repeat(4_200), '0', ''),
);

const headers = fc.uniqueArray(fc.tuple(token, value), { maxLength: 12, selector: ([name]) => name });

async function whileConnected(
  port: number,
  body: (ask: (sent: OutgoingHttpHeaders) => Promise<IncomingHttpHeaders>) => Promise<void>,
): Promise<void> {
  const session = connect(`http://127.0.0.1:${port}`);
  try {
    await body(
      (sent) =>
        new Promise((resolve, reject) => {
          const stream = session.request({ ':method': 'POST', ':path': '/', ...sent }, { endStream: true });
          stream.on('response', resolve).on('error', reject).resume();
        }),
    );
  } finally {
    session.destroy();
  }
}

test("reads the header fields of 400 requests as Node.js's client wrote them, on one connection", async () => {
  const server = await runServer();
  const names = fc.sample(headers, { seed, numRuns: 400 });
  try {
    await whileConnected(server.port, async (ask) => {
      for (const sent of names) {
        // What was sent before comes again, by its place in the table.
        const repeated = [...sent, ...(names[0] ?? []).filter(([name]) => !sent.some(([other]) => other === name))];
        await ask(Object.fromEntries(repeated));
        const seen = (server.requests.at(-1)?.fields ?? []).slice(8);
        expect(seen).toEqual(repeated.flat());
      }
    });
    expect(server.requests).toHaveLength(400);
  } finally {
    await server.close();
  }
});

test('reads every byte that a value may have, in the Huffman code', async () => {
  const server = await runServer();
  // Beside letters of five bits the longest code makes the value shorter than it is, so that the client takes the code.
  const bytes = Array.from({ length: 256 }, (_, byte) => byte).filter(
    (byte) => (byte >= 32 && byte !== 127) || byte === 9,
  );
  try {
    await whileConnected(server.port, async (ask) => {
      for (const byte of bytes) {
        const sent = `${'e'.repeat(20)}${String.fromCharCode(byte)}a`;
        await ask({ 'x-byte': sent });
        expect([byte, server.requests.at(-1)?.fields.at(-1)]).toEqual([byte, sent]);
      }
    });
  } finally {
    await server.close();
  }
});

test("writes the header fields of 200 answers as Node.js's client reads them", async () => {
  const samples = fc.sample(headers, { seed, numRuns: 200 });
  let next = 0;
  const server = await runServer({
    answer: () => {
      const told = samples[next] ?? [];
      next += 1;
      return { headers: [':status', String(200 + (next % 300)), 'content-type', 'text/plain', ...told.flat()] };
    },
  });
  try {
    await whileConnected(server.port, async (ask) => {
      for (const [index, told] of samples.entries()) {
        const { ':status': status, 'content-type': mediaType, ...rest } = await ask({});
        expect([status, mediaType]).toEqual([200 + ((index + 1) % 300), 'text/plain']);
        expect({ ...rest }).toMatchObject(Object.fromEntries(told));
      }
    });
  } finally {
    await server.close();
  }
});

test('finds a field without the blanks around its value, and several of one name as one', () => {
  const fields = ['a', ' one ', 'b', '\t two  three\t', 'a', 'four ', 'c', ' \t ', 'd', ''];
  expect(['a', 'b', 'c', 'd', 'e'].map((name) => fieldOf(fields, name))).toEqual([
    'one, four',
    'two  three',
    '',
    '',
    undefined,
  ]);
});
