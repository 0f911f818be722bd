import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { selfSigned } from '@order-gateway/postgres/testing/self-signed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../../tools/test-resources.ts';
import { createResolve, createSender, type SenderOptions } from '../../src/background/send.ts';
import { webhookLimits } from '../../src/limits.ts';
import { runWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts';

function newSender(options: SenderOptions) {
  const sender = createSender(options);
  onTestFinished(() => sender.close());
  return sender;
}

const toAny = { allowedAddresses: 'any' } as const;

test('a request is sent unchanged, and its result is the status of the response', async () => {
  const receiver = await runWebhookReceiver();
  const result = await newSender(toAny).send(`${receiver.url}?a=b`, { 'webhook-id': 'evt_1' }, '{"name":"Zoë"}');
  expect(result).toEqual({ status: 204, text: 'HTTP 204' });
  expect(receiver.received).toMatchObject([
    {
      method: 'POST',
      path: '/hook?a=b',
      headers: { 'webhook-id': 'evt_1', 'content-length': '15' },
      body: '{"name":"Zoë"}',
    },
  ]);
});

test('successive requests share a connection', async () => {
  const receiver = await runWebhookReceiver();
  const sender = newSender(toAny);
  for (let count = 0; count < 5; count += 1) await sender.send(receiver.url, {}, '{}');
  expect(receiver.connections()).toBe(1);
});

describe.each([
  ['http', undefined],
  ['https', selfSigned('localhost')],
])('over %s', (_, tls) => {
  /** Runs a receiver that keeps each connection after the first response, and calls `end` at the next request. */
  async function runEndingReceiver(end: (socket: Socket) => void) {
    if (tls !== undefined) {
      const defaultCertificates = getCACertificates();
      setDefaultCACertificates([tls.cert]);
      onTestFinished(() => setDefaultCACertificates(defaultCertificates));
    }
    const used = new WeakSet<Socket>();
    return runWebhookReceiver({
      tls,
      respond(_, response) {
        const { socket } = response.req;
        if (used.has(socket)) return end(socket);
        used.add(socket);
        response.writeHead(204).end();
      },
    });
  }

  test('a request on a kept connection that closes is sent again on a new one', async () => {
    const receiver = await runEndingReceiver((socket) => socket.destroy());
    const sender = newSender(toAny);
    const results = [];
    for (let count = 0; count < 3; count += 1) {
      const sending = Array.from({ length: 4 }, () => sender.send(receiver.url, {}, '{}'));
      results.push(...(await Promise.all(sending)));
    }
    expect(results).toEqual(Array(12).fill({ status: 204, text: 'HTTP 204' }));
    expect(receiver.received.length).toBeGreaterThan(12);
  });

  test('a request is not sent again once a part of its response has arrived', async () => {
    const receiver = await runEndingReceiver((socket) => socket.end('HTTP/1.1 2'));
    const sender = newSender(toAny);
    expect(await sender.send(receiver.url, {}, '{}')).toMatchObject({ status: 204 });
    expect((await sender.send(receiver.url, {}, '{}')).status).toBeUndefined();
    expect(receiver.received.length).toBe(2);
  });
});

test('a request in flight ends with the sender, even on a kept connection', async () => {
  const receiver = await runWebhookReceiver({
    respond: (_, response) => void (receiver.received.length === 1 && response.writeHead(204).end()),
  });
  const sender = newSender(toAny);
  expect(await sender.send(receiver.url, {}, '{}')).toMatchObject({ status: 204 });
  const sending = sender.send(receiver.url, {}, '{}');
  await expect.poll(() => receiver.received.length).toBe(2);
  sender.close();
  expect((await sending).status).toBeUndefined();
  expect(receiver.received.length).toBe(2);
});

test('a redirect is the result and is not followed', async () => {
  const target = await runWebhookReceiver();
  const receiver = await runWebhookReceiver({
    respond: (_, response) => void response.writeHead(307, { location: target.url }).end(),
  });
  expect(await newSender(toAny).send(receiver.url, {}, '{}')).toEqual({ status: 307, text: 'HTTP 307' });
  expect(target.connections()).toBe(0);
});

test('a request ends within its timeout if the endpoint does not respond, or responds byte by byte', async () => {
  const silent = await runWebhookReceiver({ respond: () => {} });
  const trickling = await runWebhookReceiver({
    respond(_, response) {
      const timer = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(timer));
    },
  });
  const sendWithin = (timeoutMs: number, { url }: WebhookReceiver) =>
    newSender({ ...toAny, timeoutMs }).send(url, {}, '{}');
  expect(await sendWithin(100, silent)).toEqual({ text: 'no response within 0.1 s' });
  // The timeout doubles until the first byte arrives in time, which takes longer on a slow machine.
  let attempts = 0;
  const sendAgain = () => sendWithin(100 * 2 ** attempts++, trickling);
  await expect.poll(sendAgain).toEqual({ status: 200, text: 'HTTP 200' });
});

test('a request ends within its timeout if the host name never resolves', async () => {
  const sender = newSender({ ...toAny, resolve: () => new Promise(() => {}), timeoutMs: 300 });
  expect(await sender.send('http://shop.example/hook', {}, '{}')).toEqual({ text: 'no response within 0.3 s' });
});

test.each([
  ['IPv4', async () => ['192.0.2.1'], () => new Promise<string[]>(() => {}), ['192.0.2.1']],
  ['IPv6', () => Promise.reject(new Error('ENODATA')), () => sleep(20, ['2001:db8::1']), ['2001:db8::1']],
  ['both', async () => ['192.0.2.1'], async () => ['2001:db8::1'], ['192.0.2.1', '2001:db8::1']],
])('a host name resolves if name servers have addresses for %s', async (_, resolve4, resolve6, addresses) => {
  const resolve = createResolve(() => ({ resolve4, resolve6 }));
  expect((await resolve('shop.example')).map(({ address }) => address)).toEqual(addresses);
});

test('each lookup reads the addresses of the name servers again', async () => {
  const servers = ['192.0.2.1'];
  const resolve = createResolve(() => {
    const [server = ''] = servers;
    return { resolve4: async () => [server], resolve6: async () => [] };
  });
  expect(await resolve('shop.example')).toMatchObject([{ address: '192.0.2.1' }]);
  servers[0] = '192.0.2.2';
  expect(await resolve('shop.example')).toMatchObject([{ address: '192.0.2.2' }]);
});

test('a host name that no name server knows does not resolve', async () => {
  const unknown = () => Promise.reject(new Error('ENOTFOUND'));
  const resolve = createResolve(() => ({ resolve4: unknown, resolve6: unknown }));
  await expect(resolve('shop.example')).rejects.toThrow('ENOTFOUND');
});

test('a large response is cut off', async () => {
  let sentBytes = 0;
  const receiver = await runWebhookReceiver({
    respond(_, response) {
      const send = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1_024))) sentBytes += 1_024;
      };
      response.on('drain', send);
      send();
    },
  });
  expect(await newSender(toAny).send(receiver.url, {}, '{}')).toMatchObject({ status: 200 });
  // The socket buffers of both sides hold further bytes.
  expect(sentBytes).toBeLessThan(webhookLimits.responseBytesMax + 20_000_000);
});

test.each([
  ['nothing listens', undefined, 'ECONNREFUSED'],
  ['the server closes the connection', '', 'ECONNRESET'],
  ['the server does not speak HTTP', 'SSH-2.0-OpenSSH\r\n', 'HPE_INVALID_CONSTANT'],
  [
    'the server switches to another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    'connection closed',
  ],
])('the result names the error if %s', async (_, greeting, text) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(greeting ?? ''));
  });
  const port = await listen(server);
  if (greeting === undefined) server.close();
  expect(await newSender(toAny).send(`http://127.0.0.1:${port}/`, {}, '{}')).toEqual({ text });
});

test('over TLS, the certificate must be valid', async () => {
  const tls = selfSigned('localhost');
  const receiver = await runWebhookReceiver({ tls });
  expect(await newSender(toAny).send(receiver.url, {}, '{}')).toEqual({ text: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  const defaultCertificates = getCACertificates();
  setDefaultCACertificates([tls.cert]);
  onTestFinished(() => setDefaultCACertificates(defaultCertificates));
  expect(await newSender(toAny).send(receiver.url, {}, '{}')).toEqual({ status: 204, text: 'HTTP 204' });
  const elsewhere = receiver.url.replace('localhost', '127.0.0.1');
  expect(await newSender(toAny).send(elsewhere, {}, '{}')).toEqual({ text: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});

const rejected = { text: 'address not allowed' };

test.each([
  ...['127.0.0.1', '127.1', '2130706433', '0.0.0.0', '10.0.0.1', '169.254.169.254'],
  ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:10.0.0.1]', '[64:ff9b::7f00:1]'],
])('does not connect to https://%s', async (host) => {
  const receiver = await runWebhookReceiver({ tls: selfSigned('localhost') });
  const { port } = new URL(receiver.url);
  expect(await newSender({ allowedAddresses: 'public' }).send(`https://${host}:${port}/`, {}, '{}')).toEqual(rejected);
  expect(receiver.connections()).toBe(0);
});

test('connects to this machine over http if that is allowed, but not to other private addresses', async () => {
  const receiver = await runWebhookReceiver();
  const sender = newSender({ allowedAddresses: 'loopback' });
  const { port } = new URL(receiver.url);
  expect(await sender.send(`http://localhost:${port}/`, {}, '{}')).toMatchObject({ status: 204 });
  for (const url of ['http://10.0.0.1/', 'https://10.0.0.1/', 'http://8.8.8.8/'])
    expect(await sender.send(url, {}, '{}')).toEqual(rejected);
  const resolve = async () => [{ address: '10.0.0.1', family: 4 }];
  expect(await newSender({ allowedAddresses: 'loopback', resolve }).send('https://shop.example/', {}, '{}')).toEqual(
    rejected,
  );
});

test('does not connect to a public URL without TLS', async () => {
  expect(await newSender({ allowedAddresses: 'public' }).send('http://8.8.8.8/', {}, '{}')).toEqual(rejected);
});

test.each(['127.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1'])(
  'does not connect to a name that resolves to %s',
  async (address) => {
    const receiver = await runWebhookReceiver({ tls: selfSigned('localhost') });
    const resolve = async () => [{ address, family: address.includes(':') ? 6 : 4 }];
    const sender = newSender({ allowedAddresses: 'public', resolve });
    expect(await sender.send(receiver.url.replace('localhost', 'shop.example'), {}, '{}')).toEqual(rejected);
    expect(receiver.connections()).toBe(0);
  },
);

test('connects only to the public addresses of a name', async () => {
  const receiver = await runWebhookReceiver({ tls: selfSigned('localhost') });
  const resolve = async () => [
    { address: '127.0.0.1', family: 4 },
    // This network is not allocated, so no host has an address in it.
    { address: '3000::1', family: 6 },
  ];
  const sender = newSender({ allowedAddresses: 'public', resolve, timeoutMs: 300 });
  const result = await sender.send(receiver.url.replace('localhost', 'shop.example'), {}, '{}');
  expect(result.status).toBeUndefined();
  expect(result).not.toEqual(rejected);
  expect(receiver.connections()).toBe(0);
});

test('does not connect to the private address of a name that first resolves to a public one', async () => {
  const receiver = await runWebhookReceiver({ tls: selfSigned('localhost') });
  let lookups = 0;
  const resolve = async () => {
    lookups += 1;
    return [{ address: lookups === 1 ? '4000::1' : '127.0.0.1', family: lookups === 1 ? 6 : 4 }];
  };
  const sender = newSender({ allowedAddresses: 'public', resolve, timeoutMs: 300 });
  const url = receiver.url.replace('localhost', 'shop.example');
  await sender.send(url, {}, '{}');
  // There is one lookup per connection, so the address that was checked is also used.
  expect(lookups).toBe(1);
  expect(await sender.send(url, {}, '{}')).toEqual(rejected);
  expect([lookups, receiver.connections()]).toEqual([2, 0]);
});

test('does not connect to localhost, because names are resolved by DNS only, without the hosts file', async () => {
  const receiver = await runWebhookReceiver({ tls: selfSigned('localhost') });
  const result = await newSender({ allowedAddresses: 'public', timeoutMs: 5_000 }).send(receiver.url, {}, '{}');
  expect(result.status).toBeUndefined();
  expect(receiver.connections()).toBe(0);
});
