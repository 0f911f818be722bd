import type { Protocol } from '@gateway/fixtures/operations';
import type { GatewayAddresses } from '../gateway/gateway-process.ts';
import { createGrpcSender } from './grpc-sender.ts';
import { createHttpSender } from './http-sender.ts';
import { readConnect, readGrpcWeb, readJson } from './replies.ts';
import type { Sender } from './sender.ts';

/** A sender for calls of every protocol, with so many connections for each. */
export function openSender({ httpUrl, grpcAddress }: GatewayAddresses, connections: number): Sender {
  const senders: Record<Protocol, Sender> = {
    json: createHttpSender(httpUrl, connections, readJson),
    connect: createHttpSender(httpUrl, connections, readConnect),
    'grpc-web': createHttpSender(httpUrl, connections, readGrpcWeb),
    grpc: createGrpcSender(grpcAddress, connections),
  };
  return {
    send: (call) => senders[call.protocol].send(call),
    close() {
      for (const sender of Object.values(senders)) sender.close();
    },
  };
}
