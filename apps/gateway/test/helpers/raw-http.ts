import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { onTestFinished } from 'vitest';
import type { RunningGateway } from './running-gateway.ts';
import { credentialHeaders } from './send-order.ts';

// HTTP/1.1 as text, for requests that client libraries don't send.

/** Opens a connection, writes the text, and returns everything received until the gateway closes the connection. */
export async function exchange(
  { httpPort }: Pick<RunningGateway, 'httpPort'>,
  text: string | Uint8Array,
): Promise<string> {
  const socket = connect(httpPort, '127.0.0.1');
  socket.write(text);
  return textOf(socket);
}

/** Opens a connection, writes the text, and returns the first bytes received. Closes the connection after the test. */
export async function firstBytes({ httpPort }: Pick<RunningGateway, 'httpPort'>, text: string): Promise<string> {
  const socket = connect(httpPort, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(text);
  return String((await once(socket, 'data'))[0]);
}

/** Returns everything received until the gateway closes the connection. */
export async function textOf(socket: Socket): Promise<string> {
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => {});
  await once(socket, 'close');
  return received;
}

/** Returns the request line and headers of a POST with valid credentials. */
export function postHead(
  { credentials }: Pick<RunningGateway, 'credentials'>,
  path: string,
  ...headers: string[]
): string {
  const { 'x-client-id': id, 'x-client-secret': secret } = credentialHeaders(credentials);
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: x',
    `x-client-id: ${id}`,
    `x-client-secret: ${secret}`,
    'content-type: application/json',
  ];
  return `${[...lines, ...headers].join('\r\n')}\r\n\r\n`;
}

/** Returns a complete request that creates an order. */
export function orderRequest(gateway: RunningGateway, orderId: string): string {
  const body = JSON.stringify(validOrderInput({ order_id: orderId }));
  return `${postHead(gateway, '/order', `content-length: ${body.length}`)}${body}`;
}

/** Returns the status of each response, in the order received. */
export function statusesOf(received: string): string[] {
  return received.match(/(?<=HTTP\/1\.1 )\d{3}/g) ?? [];
}
