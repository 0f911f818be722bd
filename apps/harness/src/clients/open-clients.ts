import type { Client, Door } from './client.ts';
import { createConnectClient } from './connect-client.ts';
import { createGrpcClient, createGrpcWebClient } from './grpc-client.ts';
import { createJsonClient } from './json-client.ts';

/** One client for each door of a gateway. They connect when they are first used. */
export function openClients(gateway: { readonly httpUrl: string; readonly grpcAddress: string }): Record<Door, Client> {
  return {
    json: createJsonClient(gateway.httpUrl),
    connect: createConnectClient(gateway.httpUrl),
    'grpc-web': createGrpcWebClient(gateway.httpUrl),
    grpc: createGrpcClient(gateway.grpcAddress),
  };
}
