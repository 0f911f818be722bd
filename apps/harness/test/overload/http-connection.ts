import type { Socket } from 'node:net';
import type { Credentials } from '@order-gateway/domain/accounts';
import { type FloodConnection, renewerOf } from './connection.ts';

/** Creates an HTTP/1.1 connection without pipelining, so it sends one call at a time. */
export function createHttpConnection(
  socket: Socket,
  { clientId, clientSecret }: Credentials,
  order: Buffer,
): FloodConnection {
  const head = [
    'POST /order HTTP/1.1',
    'host: localhost',
    `x-client-id: ${clientId}`,
    `x-client-secret: ${clientSecret}`,
    'content-type: application/json',
    `content-length: ${order.length}`,
  ];
  const request = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), order]);
  const renew = renewerOf(request);
  let onEnd: ((isCreated: boolean) => void) | undefined;
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const headEnd = received.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1]);
    if (headEnd === -1 || received.length < headEnd + 4 + length) return;
    const isCreated = received.startsWith('201', 'HTTP/1.1 '.length);
    received = '';
    const end = onEnd;
    onEnd = undefined;
    end?.(isCreated);
  });
  socket.on('error', () => {});
  return {
    get isFree() {
      return onEnd === undefined && socket.writable;
    },
    send(end) {
      onEnd = end;
      renew();
      // Copies the bytes, because the next call can change them before they are written.
      socket.write(Buffer.from(request));
    },
    close: () => socket.destroy(),
  };
}
