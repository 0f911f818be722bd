import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { portOf, reportReady } from '../programs.ts';
import { createBareInsert } from './bare-insert.ts';

// A program that shows the cost per order of Node.js and PostgreSQL alone. Both servers read a request, insert a row
// and send constant bytes, without credentials, parsing, rules or a log.

const insert = createBareInsert(process.env.DATABASE_URL ?? '', Number(process.env.MERCHANT_ID));

/** The bodies of the responses, which are as long as the gateway's. */
const json = Buffer.alloc(300, ' ');
const grpcMessage = Buffer.alloc(154);

const http = createServer((request, response) => {
  request.resume().once('end', async () => {
    await insert();
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': json.length }).end(json);
  });
}).listen(0, '127.0.0.1');

const http2 = createHttp2Server()
  .on('stream', (stream: ServerHttp2Stream) => {
    // The sender's last calls may be in flight when it ends.
    stream.on('error', () => {});
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.resume().once('end', async () => {
      await insert();
      if (stream.destroyed) return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.end(grpcMessage);
    });
  })
  .listen(0, '127.0.0.1');

await Promise.all([once(http, 'listening'), once(http2, 'listening')]);
reportReady({ http: portOf(http), grpc: portOf(http2) });
