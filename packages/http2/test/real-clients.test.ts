import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type Settings } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { preface } from '../src/frames.ts';
import { hint, runServer, type ServerOptions } from './running-server.ts';

interface Taken {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: IncomingHttpHeaders;
}

function ask(session: ClientHttp2Session, body: Uint8Array): Promise<Taken> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':method': 'POST', ':path': '/' });
    const pieces: Buffer[] = [];
    let headers: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    stream.on('response', (come) => {
      headers = come;
    });
    stream.on('trailers', (come) => {
      trailers = come;
    });
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('error', reject);
    stream.on('end', () =>
      resolve({ status: Number(headers[':status']), headers, body: Buffer.concat(pieces), trailers }),
    );
    stream.end(body);
  });
}

async function withClient(
  options: ServerOptions,
  settings: Settings,
  body: (session: ClientHttp2Session, server: Awaited<ReturnType<typeof runServer>>) => Promise<void>,
): Promise<void> {
  const server = await runServer(options);
  const session = connect(`http://127.0.0.1:${server.port}`, { settings });
  session.on('error', () => {});
  try {
    await body(session, server);
    expect(server.faults).toEqual([]);
  } finally {
    session.destroy();
    await server.close();
  }
}

const echo: ServerOptions['answer'] = ({ body }) => ({
  headers: [':status', '200'],
  body,
  trailers: ['x-length', String(body.length)],
});

test("takes and gives large bodies on 100 streams of Node.js's client at once", async () => {
  await withClient({ answer: echo }, {}, async (session) => {
    const bodies = Array.from({ length: 100 }, (_, at) => Buffer.alloc(1_000 * at, at));
    const taken = await Promise.all(bodies.map((body) => ask(session, body)));
    expect(taken.map(({ status, trailers }) => [status, trailers['x-length']])).toEqual(
      bodies.map((body) => [200, String(body.length)]),
    );
    expect(taken.every(({ body }, at) => body.equals(bodies[at] ?? Buffer.alloc(0)))).toBe(true);
  });
});

test("answers 3,000 requests of Node.js's client, which waits for a place by itself", async () => {
  await withClient({ answer: echo, limits: { streamsMax: 120 } }, {}, async (session) => {
    const taken = await Promise.all(Array.from({ length: 3_000 }, (_, at) => ask(session, Buffer.from(String(at)))));
    expect(taken.map(({ body }) => Number(body))).toEqual(Array.from({ length: 3_000 }, (_, at) => at));
  });
});

test.each([0, 100, 4_095, 4_096, 65_536])(
  'answers a client whose header table has %i bytes, also after a change',
  async (headerTableSize) => {
    await withClient({ answer: echo }, { headerTableSize }, async (session) => {
      const statuses = async () =>
        (await Promise.all([1, 2, 3].map(() => ask(session, Buffer.from('a'))))).map(({ status }) => status);
      expect(await statuses()).toEqual([200, 200, 200]);
      for (const changed of [4_096, 0, 50]) {
        await new Promise<void>((resolve) => session.settings({ headerTableSize: changed }, () => resolve()));
        expect(await statuses()).toEqual([200, 200, 200]);
      }
    });
  },
);

test.each([16_000, 16_400, 40_000])('sends fields of %i bytes', async (length) => {
  const long = 'v'.repeat(length);
  const answer = () => ({ headers: [':status', '200', 'x-long', long], trailers: ['x-long', long] });
  await withClient({ answer }, { maxHeaderListSize: 100_000 }, async (session) => {
    const { headers, trailers } = await ask(session, Buffer.from('a'));
    expect([headers['x-long'], trailers['x-long']]).toEqual([long, long]);
  });
});

test('tells a client of HTTP/1.1 where it is', async () => {
  const server = await runServer();
  try {
    const request = { method: 'POST', body: 'x'.repeat(100_000) };
    const answer = await fetch(`http://127.0.0.1:${server.port}/order`, request);
    expect([answer.status, answer.headers.get('connection'), await answer.text()]).toEqual([505, 'close', `${hint}\n`]);
    expect([server.requests, server.faults]).toEqual([[], []]);
  } finally {
    await server.close();
  }
});

test.each([
  ['another version', preface.toString().replace('2.0', '2.1')],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01'],
])('ends a connection that begins with %s, however it is cut', async (_name, bytes) => {
  const server = await runServer();
  try {
    const socket = connectSocket({ port: server.port, host: '127.0.0.1', noDelay: true });
    const said = text(socket);
    for (const byte of Buffer.from(bytes, 'latin1')) {
      socket.write(Uint8Array.of(byte));
      await new Promise(setImmediate);
    }
    expect(await said).toMatch(/^HTTP\/1\.1 505 .*HTTP\/2 only\n$/s);
    socket.destroy();
    expect(server.faults).toEqual([]);
  } finally {
    await server.close();
  }
});
