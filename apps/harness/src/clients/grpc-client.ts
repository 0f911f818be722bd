import { Agent } from 'node:http';
import { toJson } from '@bufbuild/protobuf';
import { ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createGrpcTransport, createGrpcWebTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { CreateOrderResponseSchema, OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { binaryOrder } from './binary-order.ts';
import { type Client, type Door, requestTimeoutMs } from './client.ts';
import { rpcRefusal, rpcSuccess } from './rpc-answer.ts';

/** An internal service: gRPC with binary Protobuf over HTTP/2 cleartext. `grpcAddress` is `host:port`. */
export function createGrpcClient(grpcAddress: string): Client {
  const baseUrl = `http://${grpcAddress}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const transport = createGrpcTransport({ baseUrl, sessionManager });
  return createRpcClient('grpc', transport, () => sessionManager.abort());
}

/** A browser's tool: gRPC-Web with binary Protobuf over HTTP/1.1, on the HTTP port. */
export function createGrpcWebClient(httpUrl: string): Client {
  const agent = new Agent({ keepAlive: true });
  const transport = createGrpcWebTransport({ baseUrl: httpUrl, httpVersion: '1.1', nodeOptions: { agent } });
  return createRpcClient('grpc-web', transport, () => agent.destroy());
}

function createRpcClient(door: Door, transport: Transport, close: () => void): Client {
  const service = createClient(OrderService, transport);
  return {
    door,
    async send(call) {
      const said = binaryOrder(call.order);
      if (!said.ok) return { kind: 'none', cause: said.reason };
      // The content-type is the protocol's own here.
      const { 'content-type': _ours, ...headers } = call.headers;
      const answered = new Headers();
      const keep = (some: Headers) => {
        for (const [name, value] of some) answered.set(name, value);
      };
      try {
        const response = await service.createOrder(said.message, {
          headers,
          // A signal and not timeoutMs: that would tell the gateway a deadline, and so change what is tested.
          signal: AbortSignal.timeout(requestTimeoutMs),
          onHeader: keep,
          onTrailer: keep,
        });
        return rpcSuccess(toJson(CreateOrderResponseSchema, response), answered);
      } catch (error) {
        const refusal = ConnectError.from(error);
        // Every answer has headers; an error without any was made on this side of the wire.
        return [...refusal.metadata].length > 0 ? rpcRefusal(refusal) : { kind: 'none', cause: refusal.message };
      }
    },
    close,
  };
}
