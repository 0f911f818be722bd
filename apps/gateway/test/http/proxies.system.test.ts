import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import { connect as openSocket } from 'node:net';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { Health, HealthCheckResponse_ServingStatus } from '@order-gateway/contract/health/v1/health_pb';
import { freePorts } from '@order-gateway/dev-postgres';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test } from 'vitest';
import { proxies, type Replacement, runProxy } from '../../../../tools/proxies.ts';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { listen } from '../../../../tools/test-resources.ts';
import { createAuthority, noCertificates } from '../helpers/certificates.ts';
import { grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { runGateway } from '../helpers/running-gateway.ts';
import { orderMessage, sendRequest } from '../helpers/send-order.ts';

// The client's address must differ from the proxy's. Linux lets programs use all of 127.0.0.0/8.
const notLinux = process.platform === 'linux' ? undefined : 'it needs a second loopback address';
const localAddress = '127.0.0.2';

for (const program of proxies) {
  const reason = missing(program) ?? noCertificates ?? notLinux;
  const isSkipped = mustSkip(`the configuration of ${program}`, reason);
  const title = `behind ${program} as in deploy/, both ports serve TLS clients, and the gateway logs their addresses`;
  test.skipIf(isSkipped)(title, async () => {
    const authority = createAuthority();
    const gateway = await runGateway({ trustProxy: '127.0.0.1' });
    onTestFinished(() => authority.remove());
    const { certFile, keyFile, cert, key } = authority.issue('server');
    const [http = 0, grpc = 0] = await freePorts(2);
    const bothFile = `${authority.folder}/both.pem`;
    await writeFile(bothFile, Buffer.concat([cert, key]));
    const gateways = { http: gateway.httpPort, grpc: gateway.grpcPort };
    await runProxy(program, {
      http,
      grpc,
      tls: { certFile, keyFile, bothFile },
      gateways: [gateways, gateways],
    });
    // The address that a client claims to have is ignored.
    const headers = { ...gateway.headers, 'x-forwarded-for': '198.51.100.1' };
    const options = { ca: authority.ca, localAddress };
    const order = validOrderInput({ order_id: 'proxied' });
    const post = () => sendRequest(`https://127.0.0.1:${http}/order`, { ...options, method: 'POST', headers }, order);
    await expect
      .poll(() => post().catch(() => 'not yet'))
      .toMatchObject({
        status: 201,
        headers: { 'strict-transport-security': 'max-age=31536000' },
      });
    const proxy = { grpcUrl: `https://127.0.0.1:${grpc}` };
    const created = await grpcClient(OrderService, proxy, options).createOrder(orderMessage('proxied'), { headers });
    expect(created.orderId).toBe('proxied');
    const watching = new AbortController();
    for await (const { status } of grpcClient(Health, proxy, options).watch({}, { signal: watching.signal })) {
      expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING);
      break;
    }
    watching.abort();
    expect(gateway.calls.map(({ protocol, code, remote_address }) => [protocol, code, remote_address])).toEqual([
      ['json', 'created', localAddress],
      ['grpc', 'replayed', localAddress],
    ]);
  });

  /**
   * Runs the proxy in front of a server, and waits until `GET /` gets a response. No server listens on the gRPC port.
   */
  const runInFrontOf = async (listener: RequestListener, replaced: readonly Replacement[] = []) => {
    const [http = 0, grpc = 0, closed = 0] = await freePorts(3);
    const ports = { http: await listen(createServer(listener)), grpc: closed };
    await runProxy(program, { http, grpc, gateways: [ports, ports], replaced });
    const url = `http://127.0.0.1:${http}`;
    await expect.poll(() => fetch(url).catch(() => undefined)).toMatchObject({ status: 200 });
    return { url, grpc };
  };

  test.skipIf(isSkipped)(`${program} as in deploy/ does not retry a call that gets 503`, async () => {
    let calls = 0;
    const { url } = await runInFrontOf((request, response) => {
      if (request.url === '/order') calls += 1;
      response.writeHead(request.url === '/order' ? 503 : 200).end();
    });
    const response = await fetch(`${url}/order`, { method: 'POST', body: '{}' });
    expect([response.status, calls]).toEqual([503, 1]);
  });

  test.skipIf(isSkipped)(`${program} as in deploy/ sends the requests for the checkout there`, async () => {
    const checkout = createServer(({ headers }, response) => {
      response.end(`checkout for ${headers.host} and ${headers['x-forwarded-for']}`);
    });
    const address = `127.0.0.1:${await listen(checkout)}`;
    const replaced = ['10.0.0.11:8081', '10.0.0.12:8081'].map((from) => [from, address] as const);
    const { url } = await runInFrontOf((_request, response) => response.end('gateway'), replaced);
    expect(await (await fetch(url)).text()).toBe('gateway');
    const headers = { host: 'checkout.example.com', 'x-forwarded-for': '198.51.100.1' };
    const get = async () => String((await sendRequest(`${url}/pay/x`, { headers, localAddress })).body);
    await expect.poll(get).toBe(`checkout for checkout.example.com and ${localAddress}`);
  });

  test.skipIf(isSkipped)(
    `${program} as in deploy/ responds with a problem document when no gateway is running`,
    async () => {
      const [http = 0, grpc = 0, ...closed] = await freePorts(4);
      const [gatewayHttp = 0, gatewayGrpc = 0] = closed;
      const gateway = { http: gatewayHttp, grpc: gatewayGrpc };
      await runProxy(program, { http, grpc, gateways: [gateway, gateway] });
      const post = () => fetch(`http://127.0.0.1:${http}/order`, { method: 'POST', body: '{}' });
      await expect.poll(() => post().catch(() => undefined)).toMatchObject({ status: 503 });
      const response = await post();
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(await response.json()).toMatchObject({
        status: 503,
        code: 'unavailable',
        title: errorCatalogue.unavailable.title,
        detail: expect.any(String),
        request_id: response.headers.get('x-request-id'),
      });
      const page = await fetch(`http://127.0.0.1:${http}/payment/token`, { headers: { accept: 'text/html' } });
      expect([page.status, page.headers.get('content-type')]).toEqual([503, 'text/html']);
    },
  );

  test.skipIf(isSkipped)(`${program} as in deploy/ neither ends nor retries a call with Prefer: wait`, async () => {
    const waiting: ServerResponse[] = [];
    const listener: RequestListener = (request, response) => {
      if (request.headers.prefer !== undefined) waiting.push(response);
      else if (request.method === 'GET') response.end();
    };
    const { url } = await runInFrontOf(listener, [[' 15s', ' 1s']]);
    const paths = ['/events', '/events?cursor=x', '/payment/token'];
    const waits = paths.map((path) => fetch(`${url}${path}`, { headers: { prefer: 'wait=20' } }));
    await expect.poll(() => waiting.length).toBe(paths.length);
    const unanswered = await fetch(`${url}/order`, { method: 'POST', body: '{}' });
    expect(unanswered.status).toBeGreaterThanOrEqual(503);
    expect(waiting).toHaveLength(paths.length);
    for (const response of waiting) response.end();
    expect((await Promise.all(waits)).map(({ status }) => status)).toEqual(paths.map(() => 200));
  });

  /** Runs the proxy in front of a server that responds to every request except those for `/pending`. */
  const runLimited = async (replaced?: readonly Replacement[]) => {
    const pending = new Set<ServerResponse>();
    const { url, grpc } = await runInFrontOf((request, response) => {
      if (request.url === '/pending') pending.add(response);
      else response.end();
    }, replaced);
    const get = (localAddress: string, path: string) => sendRequest(`${url}${path}`, { localAddress });
    const isServed = async (address: string) => (await get(address, '/').catch(() => undefined))?.status === 200;
    return { get, isServed, pending, grpc };
  };

  test.skipIf(isSkipped)(`${program} as in deploy/ limits the calls per second of each address`, async () => {
    const lowerLimits: Record<string, readonly Replacement[]> = {
      haproxy: [
        ['http_req_rate(10s)', 'http_req_rate(10m)'],
        ['gt 10000', 'gt 10'],
      ],
      nginx: [
        ['rate=1000r/s', 'rate=1r/m'],
        ['burst=10000', 'burst=9'],
      ],
    };
    const { get, isServed, grpc } = await runLimited(lowerLimits[program]);
    const send = (count: number) => Promise.all(Array.from({ length: count }, () => get('127.0.0.2', '/')));
    const served = await send(10);
    expect(served.map(({ status }) => status)).toEqual(Array(10).fill(200));
    // Sent afterwards, because HAProxy counts calls that arrive at the same time before it compares their number.
    const rejected = await send(5);
    for (const { status, headers, body } of rejected) {
      expect(status).toBe(429);
      expect(headers).toMatchObject({
        'content-type': 'application/problem+json',
        'retry-after': expect.any(String),
      });
      expect(JSON.parse(body)).toMatchObject({
        status: 429,
        code: 'rate_limited',
        title: errorCatalogue.rate_limited.title,
        request_id: headers['x-request-id'],
      });
    }
    const session = connect('http://127.0.0.1', {
      createConnection: () => openSocket({ host: '127.0.0.1', port: grpc, localAddress: '127.0.0.3' }),
    });
    onTestFinished(() => session.destroy());
    const call = async () => {
      const [headers] = await once(session.request({ ':path': '/' }), 'response');
      return headers[':status'] === 429;
    };
    const areRejected = (count: number) => Promise.all(Array.from({ length: count }, call));
    expect(await areRejected(10)).toEqual(Array(10).fill(false));
    expect(await areRejected(5)).toEqual(Array(5).fill(true));
    expect(await isServed('127.0.0.4')).toBe(true);
  });

  test.skipIf(isSkipped)(`${program} as in deploy/ limits the calls in flight of each address`, async () => {
    const { get, isServed, pending } = await runLimited();
    const send = (count: number) =>
      Array.from({ length: count }, async () => (await get('127.0.0.2', '/pending').catch(() => undefined))?.status);
    const calls = send(256);
    await expect.poll(() => pending.size).toBe(256);
    expect(await Promise.all(send(44))).not.toContain(200);
    expect(await isServed('127.0.0.3')).toBe(true);
    for (const response of pending) response.end();
    expect(await Promise.all(calls)).toEqual(Array(256).fill(200));
    expect(await isServed('127.0.0.2')).toBe(true);
  });
}
