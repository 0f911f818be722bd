import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Code } from '@connectrpc/connect';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { messageBytesMax } from '../../src/limits.ts';
import { createOrderPath, lengthPrefixed, sendCall } from '../helpers/grpc/grpc-call.ts';
import { useSession } from '../helpers/grpc/grpc-servers.ts';
import { exchange, firstBytes, postHead } from '../helpers/raw-http.ts';
import { useGateway } from '../helpers/running-gateway.ts';

const gateway = useGateway();

const grpcHeaders = () => ({ ...gateway.headers, 'content-type': 'application/grpc' });

test('over gRPC, an announced size above the limit is rejected before the credentials are checked', async () => {
  const headers = { 'content-type': 'application/grpc', 'content-length': '70005' };
  const session = useSession(gateway.grpcPort);
  const { trailers } = await sendCall(session, { headers, chunks: [], ends: false });
  expect(trailers['grpc-status']).toBe(String(Code.ResourceExhausted));
  await expect.poll(() => gateway.calls.at(-1)).toMatchObject({ protocol: 'grpc', code: 'body_too_large' });
});

const expectation = ['content-length: 100', 'expect: 100-continue'];

test.each([
  ['an invalid secret', '/order', ['x-client-secret: none'], 401],
  ['an unsupported media type', '/order', ['content-type: text/plain'], 415],
  ['a body over the limit', '/order', [`content-length: ${messageBytesMax + 1}`], 413],
  ['an invalid secret, over Connect', createOrderPath, ['x-client-secret: none'], 401],
  ['an unknown path', '/nowhere', [], 404],
  ['an unsupported method', '/health/live', [], 405],
])('a request with Expect: 100-continue is rejected without its body: %s', async (_, path, fields, status) => {
  const replaced = fields.map((field) => field.slice(0, field.indexOf(':') + 1));
  const lines = postHead(gateway, path, ...expectation)
    .trimEnd()
    .split('\r\n');
  const kept = lines.filter((line) => !replaced.some((name) => line.startsWith(name)));
  const response = await exchange(gateway, `${[...kept, ...fields].join('\r\n')}\r\n\r\n`);
  expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  // The client may omit the body, which makes the rest of the connection unreadable.
  expect(response.toLowerCase()).toContain('\r\nconnection: close\r\n');
});

test.each(['/order', createOrderPath])(
  'POST %s with Expect: 100-continue is asked for its body, and keeps its connection',
  async (path) => {
    const body = JSON.stringify(validOrderInput({ order_id: `continued-${path}` }));
    const socket = connect(gateway.httpPort, '127.0.0.1').setEncoding('latin1');
    socket.write(postHead(gateway, path, `content-length: ${body.length}`, 'expect: 100-continue'));
    expect((await once(socket, 'data'))[0]).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write(body);
    const [response] = await once(socket, 'data');
    socket.destroy();
    expect(response).toMatch(/^HTTP\/1\.1 20[01] /);
    expect(response.toLowerCase()).not.toContain('\r\nconnection: close\r\n');
  },
);

test('a payment form with Expect: 100-continue is asked for its body', async () => {
  const head = postHead(gateway, '/payment/x/simulate', ...expectation).replace(
    'application/json',
    'application/x-www-form-urlencoded',
  );
  expect(await firstBytes(gateway, head)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
});

async function postMessage(contentType: string, body: Uint8Array, headers: Record<string, string> = {}) {
  const response = await fetch(gateway.url + createOrderPath, {
    method: 'POST',
    headers: { ...gateway.headers, 'content-type': contentType, ...headers },
    body: Buffer.from(body),
  });
  return { status: response.status, text: await response.text() };
}

const invalidMessage = Buffer.from([0x0a, 0xff]);

test('invalid Protobuf is an error of the client in every protocol', async () => {
  const overConnect = await postMessage('application/proto', invalidMessage);
  expect([overConnect.status, JSON.parse(overConnect.text)]).toMatchObject([400, { code: 'invalid_argument' }]);
  const overGrpcWeb = await postMessage('application/grpc-web+proto', lengthPrefixed(invalidMessage));
  expect(overGrpcWeb.text).toMatch(/grpc-status: 3\r\n/);
  const compressed = lengthPrefixed(gzipSync(invalidMessage), { flags: 1 });
  for (const [chunk, headers] of [
    [lengthPrefixed(invalidMessage), {}],
    [compressed, { 'grpc-encoding': 'gzip' }],
    [lengthPrefixed(invalidMessage, { flags: 1 }), { 'grpc-encoding': 'gzip' }],
  ] as const) {
    const session = useSession(gateway.grpcPort);
    const call = { headers: { ...grpcHeaders(), ...headers }, chunks: [chunk], ends: true };
    expect((await sendCall(session, call)).trailers['grpc-status']).toBe(String(Code.InvalidArgument));
  }
  expect(gateway.errors).toEqual([]);
});

test('Connect in JSON may be compressed, and is read as strictly as without compression', async () => {
  const order = JSON.stringify(validOrderInput({ order_id: 'compressed' }));
  const gzip = { 'content-encoding': 'gzip' };
  const created = await postMessage('application/json', gzipSync(order), gzip);
  expect([created.status, JSON.parse(created.text)]).toMatchObject([200, { order_id: 'compressed' }]);
  const twice = await postMessage('application/json', gzipSync('{"order_id":"a","order_id":"b"}'), gzip);
  expect([twice.status, twice.text]).toEqual([400, expect.stringContaining('duplicate key')]);
  const large = await postMessage('application/json', gzipSync(Buffer.alloc(messageBytesMax + 1, ' ')), gzip);
  expect([large.status, large.text]).toEqual([429, expect.stringContaining('body_too_large')]);
  const uncompressed = await postMessage('application/json', Buffer.from(order), gzip);
  expect([uncompressed.status, JSON.parse(uncompressed.text)]).toMatchObject([400, { code: 'invalid_argument' }]);
  const unknown = await postMessage('application/json', Buffer.from(order), { 'content-encoding': 'zstd' });
  expect([unknown.status, JSON.parse(unknown.text)]).toMatchObject([501, { code: 'unimplemented' }]);
});
