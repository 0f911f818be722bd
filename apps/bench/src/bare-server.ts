import { createServer } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import postgres from 'postgres';
import { insertLone } from './lone-insert.ts';

// A program: what Node.js itself takes for one order. Both doors read a request to its end, insert a row as runLoneInserts does,
// and answer bytes that are always the same: no credentials, no reading, no rules, no log.

const sql = postgres(process.env.DATABASE_URL ?? '', { max: 1 });
const merchantId = Number(process.env.MERCHANT_ID);
let lastId = Number(process.env.FIRST_ID);

/** As long as the gateway's answers. */
const json = Buffer.alloc(300, ' ');
const grpcMessage = Buffer.alloc(154);

function insertNext(): Promise<unknown> {
  lastId += 1;
  return insertLone(sql, merchantId, lastId);
}

const http = createServer((request, response) => {
  request.resume().once('end', () => {
    void insertNext().then(() => {
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': json.length }).end(json);
    });
  });
}).listen(0, '127.0.0.1');

const http2 = createHttp2Server()
  .on('stream', (stream: ServerHttp2Stream) => {
    // A sender that has seen enough leaves with calls under way.
    stream.on('error', () => {});
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.resume().once('end', () => {
      void insertNext().then(() => {
        if (stream.destroyed) return;
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.end(grpcMessage);
      });
    });
  })
  .listen(0, '127.0.0.1');

await Promise.all([http, http2].map((server) => new Promise((listening) => server.once('listening', listening))));
const portOf = (server: typeof http | typeof http2) => (server.address() as AddressInfo).port;
process.stdout.write(`${JSON.stringify({ msg: 'ready', http: portOf(http), http2: portOf(http2) })}\n`);
