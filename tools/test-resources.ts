import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';

// Resources that are released when the test has finished.

/** Creates a folder, which is removed with its contents when the test has finished. */
export async function temporaryFolder(): Promise<string> {
  const { path, remove } = await mkdtempDisposable(join(tmpdir(), 'test-'));
  onTestFinished(remove);
  return path;
}

/** Starts a server on a free port of 127.0.0.1, returns the port, and closes the server when the test has finished. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    if (server instanceof HttpServer) server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** Collects the text of a stream. The returned function returns the text received so far. */
export function readText(stream: Readable): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  return () => text;
}
