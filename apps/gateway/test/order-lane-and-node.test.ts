import { connect } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPlainRequest } from '../src/http/plain-request.ts';
import { createHttpListener, type HttpListener } from '../src/http/server.ts';
import { credentials, heldStill } from './held-still.ts';
import { credentialHeaders } from './running-gateway.ts';

const requestsMin = 2_000;
const underWay = 20;
const seed = 20_261_122;
const requestLine = 'POST /order HTTP/1.1\r\n';
const health = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';
const last = health.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');

/** How long an answer is waited for, where the request may be one that is not whole; and again where the answers differ. */
const patienceMs = [200, 5_000];

interface Door {
  readonly port: number;
  readonly faults: unknown[];
  readonly listener: HttpListener;
}

/** Two equal doors. On the connections of the first, requests come at once; on those of the other Node.js has read one before. */
let laneDoor: Door;
let nodeDoor: Door;

async function openDoor(): Promise<Door> {
  const faults: unknown[] = [];
  const deps = { ...heldStill([], faults), isReady: async () => true, checkoutTemplate: undefined };
  const listener = createHttpListener(deps, '');
  return { port: await listener.listen(0, '127.0.0.1'), faults, listener };
}

beforeAll(async () => {
  [laneDoor, nodeDoor] = await Promise.all([openDoor(), openDoor()]);
});
afterAll(() => Promise.all([laneDoor, nodeDoor].map((door) => door?.listener.close())));

const mostly = (right: string, ...wrong: readonly string[]) =>
  fc.oneof({ weight: 20, arbitrary: fc.constant(right) }, fc.constantFrom(...wrong));

const cased = (name: string) =>
  fc.constantFrom(
    name,
    name,
    name.toUpperCase(),
    name.replace(/\b\w/g, (letter) => letter.toUpperCase()),
  );

/** A line of a header: mostly its name and value, with blanks that mean nothing. */
const line = (name: string, value: fc.Arbitrary<string>) =>
  fc
    .tuple(
      cased(name),
      mostly(':', ' :', ''),
      mostly(' ', '', '\t', '  \t '),
      value,
      mostly('', ' ', '\t', '\u0001', 'é'),
    )
    .map((parts) => parts.join(''));

const body = fc.oneof(
  fc.constant(JSON.stringify(validOrderInput({ order_id: 'ORDER' }))),
  fc.constant(JSON.stringify(validOrderInput({ order_id: 'ORDER', order_note: 'Café 北京' }))),
  fc.constant(JSON.stringify(validOrderInput({ order_id: 'kept' }))),
  fc.constant(JSON.stringify(validOrderInput({ order_id: 'kept', order_note: 'another' }))),
  fc.constant(JSON.stringify(validOrderInput({ order_id: 'ORDER', order_currency: 'XXX', customer_name: '' }))),
  fc.constant(JSON.stringify(validOrderInput({ order_id: 'ORDER', order_checksum: 'v1=00' }))),
  fc.constantFrom('{}', '[]', '', '{', 'null', '{"a":1,"a":2}', '"\\ud800"', `{"a":"${'x'.repeat(65_600)}"}`),
);

const length = (bytes: number) =>
  mostly(
    `${bytes}`,
    `${bytes - 1}`,
    `${bytes + 1}`,
    `0${bytes}`,
    `+${bytes}`,
    `${bytes}, ${bytes}`,
    '',
    '0x10',
    '99999999999',
  );

const oddLine = fc.oneof(
  line('connection', fc.constantFrom('keep-alive', 'Keep-Alive', 'close', 'upgrade', 'keep-alive, x-client-id', '')),
  line('proxy-connection', fc.constantFrom('close', 'keep-alive')),
  line('transfer-encoding', fc.constantFrom('chunked', 'identity', 'gzip, chunked', '')),
  line('expect', fc.constantFrom('100-continue', '200-ok')),
  line('upgrade', fc.constantFrom('h2c', 'websocket')),
  line('content-encoding', fc.constantFrom('identity', 'gzip', '')),
  line('x-request-id', fc.constantFrom('mine-1', 'not mine', 'x'.repeat(129), '')),
  line('x-client-id', fc.constantFrom(credentials.clientId, 'app_0', '')),
  line('host', fc.constantFrom('x', 'y')),
  line('content-type', fc.constantFrom('application/json', 'text/plain')),
  line('content-length', fc.constantFrom('2', '0')),
  line('accept', fc.constant('*/*')),
  line('x-anything', fc.stringMatching(/^[ -~]{0,60}$/)),
  fc.constantFrom(' folded', ': no name', 'no colon', 'a b: c', 'x: a\rb', 'x: a\nb', 'x: \u0000'),
);

const oddStarts = [
  ...['post /order HTTP/1.1', 'POST /order HTTP/1.0', 'POST /order?x=1 HTTP/1.1', 'POST http://x/order HTTP/1.1'],
  ...['POST /order  HTTP/1.1', 'PUT /order HTTP/1.1', 'POST /Order HTTP/1.1', 'POST /order HTTP/1.2'],
  ...['\r\nPOST /order HTTP/1.1', 'POST /%6frder HTTP/1.1', 'POST /order/ HTTP/1.1'],
];

interface Sample {
  readonly bytes: Buffer;
  /** Places at which it is cut in pieces. */
  readonly cuts: readonly number[];
}

const sample: fc.Arbitrary<Sample> = body
  .chain((text) => {
    const { clientId, clientSecret } = credentials;
    return fc.record({
      start: mostly('POST /order HTTP/1.1', ...oddStarts),
      lines: fc
        .tuple(
          line('host', mostly('x', 'not a host', '')),
          line('content-type', mostly('application/json', 'application/json; charset=utf-8', 'text/plain', '')),
          line('x-client-id', mostly(clientId, 'app_0', '')),
          line('x-client-secret', mostly(clientSecret, `${clientSecret}0`, '')),
          line('content-length', length(Buffer.byteLength(text))),
        )
        .chain((usual) => fc.subarray(usual, { minLength: 4 })),
      odd: fc.oneof({ weight: 5, arbitrary: fc.constant([]) }, fc.array(oddLine, { maxLength: 2 })),
      order: fc.nat(),
      after: mostly('', ' ', '\r\n', '{}', health),
      broken: fc.oneof(
        { weight: 5, arbitrary: fc.constant(undefined) },
        fc.record({ at: fc.nat(), byte: fc.nat({ max: 255 }) }),
      ),
      cuts: fc.oneof({ weight: 3, arbitrary: fc.constant<number[]>([]) }, fc.array(fc.nat(), { maxLength: 12 })),
      text: fc.constant(text),
    });
  })
  .map(({ start, lines, odd, order, after, broken, cuts, text }) => {
    const first = order % (lines.length + 1);
    const head = [start, ...lines.slice(first), ...odd, ...lines.slice(0, first)].join('\r\n');
    const bytes = Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), Buffer.from(text + after)]);
    if (broken !== undefined) bytes[broken.at % (head.length + 4)] = broken.byte;
    return { bytes, cuts: cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b) };
  });

/** All that a door answers to the request, and to a last one after it. */
async function exchange(port: number, { bytes, cuts }: Sample, before: string, waitMs: number): Promise<string> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  let received = '';
  socket.setEncoding('utf8').on('data', (piece) => {
    received += piece;
  });
  const answered = async (withinMs: number) => {
    const until = performance.now() + withinMs;
    while (!isWhole(received) && !socket.closed && performance.now() < until) await Promise.race([sleep(1), closed]);
  };
  if (before !== '') {
    socket.write(before);
    await answered(Number.POSITIVE_INFINITY);
    received = '';
  }
  for (const [index, start] of [0, ...cuts].entries()) {
    socket.write(bytes.subarray(start, cuts[index]));
    await turn();
  }
  await answered(waitMs);
  socket.write(last);
  await Promise.race([closed, sleep(waitMs)]);
  socket.end();
  await closed;
  return comparable(received);
}

function isWhole(received: string): boolean {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const [, bytes] = /\r\ncontent-length: (\d+)/i.exec(head) ?? [];
  return bytes !== undefined && Buffer.byteLength(rest.join('\r\n\r\n')) >= Number(bytes);
}

/** Dates differ, and ids: which order comes first is chance. */
function comparable(received: string): string {
  return received.replaceAll(/(?<=\r\nDate: )[^\r]+/g, '').replaceAll(/(?<="service_order_id":)\d+/g, '');
}

test(`answers ${requestsMin} requests of all kinds as Node.js and Fastify do`, async () => {
  const kept = Buffer.from(JSON.stringify(validOrderInput({ order_id: 'kept' })));
  for (const { port } of [laneDoor, nodeDoor]) {
    const headers = { 'content-type': 'application/json', ...credentialHeaders(credentials) };
    const response = await fetch(`http://127.0.0.1:${port}/order`, { method: 'POST', headers, body: kept });
    expect(response.status).toBe(201);
  }
  const answers = new Map<string, number>();
  const samples = fc.sample(sample, { seed, numRuns: requestsMin }).entries();
  let plain = 0;
  const work = async () => {
    for (const [number, { bytes, cuts }] of samples) {
      const text = bytes.toString('latin1').replace('ORDER', String(10_000 + number));
      const one = { bytes: Buffer.from(text, 'latin1'), cuts };
      if (typeof readPlainRequest(one.bytes, requestLine) === 'object') plain += 1;
      let [byLane, byNode] = ['', 'not asked yet'];
      for (const waitMs of patienceMs) {
        if (byLane === byNode) break;
        [byLane, byNode] = await Promise.all([
          exchange(laneDoor.port, one, '', waitMs),
          exchange(nodeDoor.port, one, health, waitMs),
        ]);
      }
      expect(byLane, JSON.stringify({ text, cuts })).toBe(byNode);
      const [status = 'none'] = byLane.match(/(?<=^HTTP\/1\.1 )\d+/) ?? [];
      answers.set(status, (answers.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: underWay }, work));
  expect(plain).toBeGreaterThan(requestsMin / 4);
  for (const status of ['200', '201', '400', '401', '404', '405', '409', '413', '415']) {
    expect(answers.get(status) ?? 0, `answers with ${status}`).toBeGreaterThanOrEqual(5);
  }
  expect([laneDoor.faults, nodeDoor.faults]).toEqual([[], []]);
}, 120_000);
