import { writeFile } from 'node:fs/promises';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { Health, HealthCheckResponse_ServingStatus } from '@gateway/contract/health/v1/health_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';
import { freePorts, missing, runProxy } from '../../../tools/proxies.ts';
import { createAuthority, noCertificates } from './certificates.ts';
import { grpcClient } from './rpc-clients.ts';
import { runGateway } from './running-gateway.ts';
import { orderMessage, sendRequest } from './send-order.ts';

// The client has another address than the proxy, which all of 127.0.0.0/8 are on Linux.
const notLinux = process.platform === 'linux' ? undefined : 'it needs a second loopback address';
const localAddress = '127.0.0.2';
const proxies = (['haproxy', 'nginx'] as const).filter(
  (program) => !leftOut(`the configuration of ${program}`, missing(program) ?? noCertificates ?? notLinux),
);

test.each(proxies)(
  'behind %s as in deploy/, both ports serve over TLS and see the address of the client',
  async (program) => {
    const authority = createAuthority();
    const gateway = await runGateway({ trustProxy: '127.0.0.1' });
    onTestFinished(() => authority.remove());
    const { certFile, keyFile, cert, key } = authority.issue('server');
    const [http, grpc] = await freePorts(2);
    const both = `${authority.folder}/both.pem`;
    await writeFile(both, Buffer.concat([cert, key]));
    await runProxy(program, [
      ...(program === 'haproxy'
        ? ([
            ['bind :443', `bind 127.0.0.1:${http}`],
            ['bind :9443', `bind 127.0.0.1:${grpc}`],
            ['/etc/haproxy/pay.example.com.pem', both],
          ] as const)
        : ([
            ['listen 443', `listen 127.0.0.1:${http}`],
            ['listen 9443', `listen 127.0.0.1:${grpc}`],
            ['/etc/nginx/pay.example.com.pem', certFile],
            ['/etc/nginx/pay.example.com.key', keyFile],
            ['/run/nginx.pid', 'nginx.pid'],
          ] as const)),
      ['10.0.0.11:8080', `127.0.0.1:${gateway.httpPort}`],
      ['10.0.0.12:8080', `127.0.0.1:${gateway.httpPort}`],
      ['10.0.0.11:9090', `127.0.0.1:${gateway.grpcPort}`],
      ['10.0.0.12:9090', `127.0.0.1:${gateway.grpcPort}`],
    ]);
    // A client that claims another address is not believed.
    const headers = { ...gateway.headers, 'x-forwarded-for': '198.51.100.1' };
    const options = { ca: authority.ca, localAddress };
    const order = validOrderInput({ order_id: 'proxied' });
    const post = () => sendRequest(`https://127.0.0.1:${http}/order`, { ...options, method: 'POST', headers }, order);
    await expect.poll(() => post().catch(() => 'not yet')).toMatchObject({ status: 201 });
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
  },
);
