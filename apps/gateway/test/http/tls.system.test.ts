import { once } from 'node:events';
import { copyFile, writeFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect as connectTls, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { openClients } from '@order-gateway/fixtures/wire';
import { afterAll, afterEach, test as anyTest, beforeAll, expect, onTestFinished, vi } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import type { TlsFiles } from '../../src/runtime/network/tls.ts';
import { openTls } from '../../src/runtime/network/tls.ts';
import { type Authority, createAuthority, noCertificates } from '../helpers/certificates.ts';
import { endProcesses, startOnNewDatabase, stopGracefully } from '../helpers/gateway-process.ts';
import { grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { createMemoryLogger } from '../helpers/memory-logger.ts';
import { type RunningGateway, runGateway, scrape } from '../helpers/running-gateway.ts';
import { orderMessage, sendRequest } from '../helpers/send-order.ts';

const isSkipped = mustSkip('TLS', noCertificates);
const test = anyTest.skipIf(isSkipped);

let authority: Authority;

beforeAll(() => {
  if (!isSkipped) authority = createAuthority();
});
afterAll(() => authority?.remove());
afterEach(endProcesses);

function runTlsGateway(files: Partial<TlsFiles> = {}): Promise<RunningGateway> {
  const { certFile, keyFile } = authority.issue('server');
  return runGateway({ tls: { certFile, keyFile, clientCaFile: undefined, ...files } });
}

/** Creates an order in JSON. */
function postOrderOverTls({ url, headers }: RunningGateway, orderId: string, agent?: Agent) {
  const options = { method: 'POST', ca: authority.ca, headers, ...(agent && { agent }) };
  return sendRequest(`${url}/order`, options, validOrderInput({ order_id: orderId }));
}

/** Returns a function that creates orders over gRPC, all on one connection. */
function grpcOrderCreator(running: RunningGateway, options: ConnectionOptions = {}) {
  const client = grpcClient(OrderService, running, { ca: authority.ca, ...options });
  return (orderId: string) => client.createOrder(orderMessage(orderId), { headers: running.headers });
}

/** Opens a TLS connection and returns its negotiated parameters, or the code of the error that ends it. */
function handshake(
  port: number,
  options: ConnectionOptions,
): Promise<{ version?: string | null; alpn?: unknown; serial?: string; error?: string }> {
  return new Promise((resolve) => {
    const socket = connectTls({ port, host: '127.0.0.1', ca: authority.ca, ...options });
    socket.once('secureConnect', () => {
      resolve({
        version: socket.getProtocol(),
        alpn: socket.alpnProtocol,
        serial: socket.getPeerCertificate().serialNumber,
      });
      socket.destroy();
    });
    socket.once('error', (error) => resolve({ error: Reflect.get(error, 'code') }));
  });
}

test('both ports use TLS, links use https, and a metric has the expiry of the certificate', async () => {
  const running = await runTlsGateway();
  expect(running.baseUrl).toBe(`https://localhost:${running.httpPort}`);
  const created = await postOrderOverTls(running, 'secure');
  expect(created.status).toBe(201);
  const { paymentLink } = await grpcOrderCreator(running)('secure');
  expect(JSON.parse(created.body).payment_link).toBe(paymentLink);
  expect(paymentLink.startsWith(`${running.baseUrl}/payment/`)).toBe(true);
  const [, expiry] = (await scrape(running)).match(/^x509_cert_not_after (\d+)$/m) ?? [];
  // The certificates of tests are valid for two days.
  expect(Number(expiry) - Date.now() / 1_000).toBeGreaterThan(86_400);
});

test.each(['/order', '/payment/unknown', '/%zz'])('over TLS, GET %s has Strict-Transport-Security', async (path) => {
  const { url, headers } = await runTlsGateway();
  const response = await sendRequest(`${url}${path}`, { ca: authority.ca, headers });
  expect(response.headers).toHaveProperty('strict-transport-security');
});

test('TLS 1.2 and 1.3 are accepted, 1.1 is rejected, and each port negotiates its own protocol', async () => {
  const { httpPort, grpcPort } = await runTlsGateway();
  for (const [port, alpn] of [
    [httpPort, 'http/1.1'],
    [grpcPort, 'h2'],
  ] as const) {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const negotiated = await handshake(port, {
        minVersion: version,
        maxVersion: version,
        ALPNProtocols: ['h2', 'http/1.1'],
      });
      expect(negotiated).toMatchObject({ version, alpn });
    }
    const oldVersions = {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
      ALPNProtocols: [alpn],
    } as const;
    expect((await handshake(port, oldVersions)).error).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
  }
});

test('with TLS_CLIENT_CA_FILE, gRPC clients need a certificate, but HTTP clients do not', async () => {
  const running = await runTlsGateway({ clientCaFile: authority.caFile });
  const otherAuthority = createAuthority();
  onTestFinished(() => otherAuthority.remove());
  await expect(grpcOrderCreator(running)('none')).rejects.toThrow();
  const { cert, key } = otherAuthority.issue('unknown');
  await expect(grpcOrderCreator(running, { cert, key })('unknown')).rejects.toThrow();
  const clientCertificate = authority.issue('client');
  expect((await grpcOrderCreator(running, clientCertificate)('known')).orderId).toBe('known');
  expect((await postOrderOverTls(running, 'known')).status).toBe(200);
  expect(running.calls.map(({ code }) => code)).toEqual(['created', 'replayed']);
});

test('no request fails while certificates are replaced, and new connections get the new certificate', async () => {
  const running = await runTlsGateway();
  const keepAlive = new Agent({ keepAlive: true, ca: authority.ca });
  const grpc = grpcOrderCreator(running);
  const serials = new Set<string | undefined>();
  let isStopping = false;
  let calls = 0;
  const callRepeatedly = async (call: (orderId: string) => Promise<unknown>) => {
    while (!isStopping) await call(`load-${calls++}`);
  };
  const loads = [
    callRepeatedly(async (id) => expect((await postOrderOverTls(running, id)).status).toBe(201)),
    callRepeatedly(async (id) => expect((await postOrderOverTls(running, id, keepAlive)).status).toBe(201)),
    callRepeatedly(grpc),
    callRepeatedly((id) => grpcOrderCreator(running)(id)),
  ];
  for (let replacement = 0; replacement < 10; replacement += 1) {
    const before = calls;
    authority.issue('server');
    await running.reloadTls();
    await expect.poll(() => calls).toBeGreaterThan(before + loads.length);
    for (const port of [running.httpPort, running.grpcPort])
      serials.add((await handshake(port, { ALPNProtocols: ['h2', 'http/1.1'] })).serial);
  }
  isStopping = true;
  await Promise.all(loads);
  keepAlive.destroy();
  expect(serials.size).toBe(10);
  expect(running.calls.filter(({ code }) => code !== 'created')).toEqual([]);
});

test('a new certificate without its key is logged once, and the previous pair stays in use', async () => {
  const running = await runTlsGateway();
  const { serial } = await handshake(running.httpPort, {});
  const otherPair = authority.issue('other');
  await copyFile(otherPair.certFile, `${authority.folder}/server.pem`);
  await running.reloadTls();
  await running.reloadTls();
  expect(running.errors.map(({ msg, reason }) => [msg, reason])).toEqual([
    [
      'TLS certificate not reloaded, the previous one stays in use',
      expect.stringContaining('is not the key of TLS_CERT_FILE'),
    ],
  ]);
  expect(await handshake(running.httpPort, {})).toMatchObject({ serial });
  await copyFile(otherPair.keyFile, `${authority.folder}/server.key`);
  await running.reloadTls();
  expect((await handshake(running.httpPort, {})).serial).not.toBe(serial);
});

test('the client of the load tests sends gRPC over TLS', async () => {
  const { baseUrl, grpcPort, headers } = await runTlsGateway();
  const trusted = getCACertificates();
  setDefaultCACertificates([authority.ca.toString()]);
  onTestFinished(() => setDefaultCACertificates(trusted));
  const { grpc } = openClients({ httpUrl: baseUrl, grpcAddress: `https://localhost:${grpcPort}` }, 1);
  onTestFinished(() => grpc.close());
  const message = new Uint8Array();
  const call = {
    operation: 'ListOrders',
    method: 'GET',
    path: '/orders',
    headers,
    bytes: message,
    request: {},
  } as const;
  expect(await grpc.send(call)).toMatchObject({ kind: 'rpc', code: 'OK' });
});

test('an expired certificate is reported at the start', async () => {
  const { certFile, keyFile } = authority.issue('expired');
  const { errors, logger } = createMemoryLogger();
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3 * 86_400_000 });
  onTestFinished(() => void vi.useRealTimers());
  const tls = await openTls({ certFile, keyFile, clientCaFile: undefined }, logger);
  tls.close();
  expect(errors).toMatchObject([{ expired_at: tls.expiry().toISOString() }]);
});

test('SIGHUP reloads the certificate, and the gateway keeps running', async ({ skip }) => {
  const { certFile, keyFile } = authority.issue('process');
  const running = await startOnNewDatabase({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
  expect(new URL(running.url).protocol).toBe('https:');
  authority.issue('process');
  running.child.kill('SIGHUP');
  await expect.poll(() => running.lines.join('\n')).toContain('TLS certificate reloaded');
  await stopGracefully(running.child, skip);
});

test('a missing or invalid TLS file is rejected with one sentence that names the variable', async () => {
  const { certFile, keyFile } = authority.issue('start');
  const otherPair = authority.issue('other-start');
  const nonsense = `${authority.folder}/nonsense.pem`;
  await writeFile(nonsense, 'nonsense');
  const cases: [Partial<TlsFiles>, string][] = [
    [{ certFile: '/nowhere.pem' }, "TLS_CERT_FILE /nowhere.pem can't be read: ENOENT: no such file or directory."],
    [{ certFile: nonsense }, `TLS_CERT_FILE ${nonsense} must be a certificate in PEM.`],
    [{ keyFile: nonsense }, `TLS_KEY_FILE ${nonsense} must be a private key without a passphrase in PEM.`],
    [{ keyFile: otherPair.keyFile }, `TLS_KEY_FILE ${otherPair.keyFile} is not the key of TLS_CERT_FILE ${certFile}.`],
    [{ clientCaFile: nonsense }, `TLS_CLIENT_CA_FILE ${nonsense} must be a certificate in PEM.`],
  ];
  for (const [invalidFile, message] of cases) {
    const files = { certFile, keyFile, clientCaFile: undefined, ...invalidFile };
    await expect(openTls(files, createMemoryLogger().logger)).rejects.toThrow(message);
  }
});

test('a client that never starts the handshake does not prevent the gateway from stopping', async () => {
  const { httpPort, grpcPort, close } = await runTlsGateway();
  const silent = [httpPort, grpcPort].map((port) => connectTcp(port, '127.0.0.1').on('error', () => {}));
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  const ends = silent.map((socket) => once(socket, 'close'));
  await close();
  await Promise.all(ends);
});

test('a client of the gRPC port that does not use HTTP/2 gets an explanation', async () => {
  const { grpcPort } = await runTlsGateway();
  const socket = connectTls({ port: grpcPort, host: '127.0.0.1', ca: authority.ca });
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  expect(await text(socket)).toContain('Missing ALPN Protocol, expected `h2`');
});
