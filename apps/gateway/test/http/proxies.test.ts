import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { Health, HealthCheckResponse_ServingStatus } from '@gateway/contract/health/v1/health_pb';
import { failures } from '@gateway/domain/failure';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test } from 'vitest';
import { leftOut, missing } from '../../../../tools/left-out.ts';
import { freePorts, proxies, runProxy } from '../../../../tools/proxies.ts';
import { createAuthority, noCertificates } from '../helpers/certificates.ts';
import { grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { runGateway } from '../helpers/running-gateway.ts';
import { orderMessage, sendRequest } from '../helpers/send-order.ts';

// The client has another address than the proxy, which all of 127.0.0.0/8 are on Linux.
const notLinux = process.platform === 'linux' ? undefined : 'it needs a second loopback address';
const localAddress = '127.0.0.2';

for (const program of proxies) {
  const reason = missing(program) ?? noCertificates ?? notLinux;
  const isLeftOut = leftOut(`the configuration of ${program}`, reason);
  const title = `behind ${program} as in deploy/, both ports serve over TLS and see the address of the client`;
  test.skipIf(isLeftOut)(title, async () => {
    const authority = createAuthority();
    const gateway = await runGateway({ trustProxy: '127.0.0.1' });
    onTestFinished(() => authority.remove());
    const { certFile, keyFile, cert, key } = authority.issue('server');
    const [http = 0, grpc = 0] = await freePorts(2);
    const both = `${authority.folder}/both.pem`;
    await writeFile(both, Buffer.concat([cert, key]));
    const gateways = { http: gateway.httpPort, grpc: gateway.grpcPort };
    await runProxy(program, {
      http,
      grpc,
      tls: { certFile, keyFile, bothFile: both },
      gateways: [gateways, gateways],
    });
    // A client that claims another address is not believed.
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

  test.skipIf(isLeftOut)(`${program} as in deploy/ does not repeat an overloaded call`, async () => {
    let calls = 0;
    const gateway = createServer((request, response) => {
      if (request.url === '/order') calls += 1;
      response.writeHead(request.url === '/order' ? 503 : 200).end();
    });
    onTestFinished(() => void gateway.close().closeAllConnections());
    await once(gateway.listen(0, '127.0.0.1'), 'listening');
    const [http = 0, grpc = 0] = await freePorts(2);
    const ports = { http: Number(Object(gateway.address()).port), grpc };
    await runProxy(program, { http, grpc, gateways: [ports, ports] });
    const ready = () => fetch(`http://127.0.0.1:${http}/`).catch(() => undefined);
    await expect.poll(ready).toMatchObject({ status: 200 });
    const response = await fetch(`http://127.0.0.1:${http}/order`, { method: 'POST', body: '{}' });
    expect([response.status, calls]).toEqual([503, 1]);
  });

  test.skipIf(isLeftOut)(`${program} as in deploy/ responds with a problem in JSON when no gateway runs`, async () => {
    const [http = 0, grpc = 0, ...closed] = await freePorts(4);
    const [gatewayHttp = 0, gatewayGrpc = 0] = closed;
    const gateway = { http: gatewayHttp, grpc: gatewayGrpc };
    await runProxy(program, { http, grpc, gateways: [gateway, gateway] });
    const post = () => fetch(`http://127.0.0.1:${http}/order`, { method: 'POST', body: '{}' });
    await expect.poll(() => post().catch(() => undefined)).toMatchObject({ status: 503 });
    const response = await post();
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(await response.json()).toMatchObject({
      ...{ status: 503, code: 'unavailable', title: failures.unavailable.title },
      ...{ detail: expect.any(String), request_id: response.headers.get('x-request-id') },
    });
    const page = await fetch(`http://127.0.0.1:${http}/payment/token`, { headers: { accept: 'text/html' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([503, 'text/html']);
  });
}
