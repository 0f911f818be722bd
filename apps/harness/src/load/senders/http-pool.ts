import { requestTimeoutMs } from '@gateway/fixtures/client';
import { type Dispatcher, Pool } from 'undici';
import type { LoadCall } from '../make-calls.ts';
import { noReply, type Reply, type Sender } from './sender.ts';

/** An answer over HTTP/1.1, read to its end. */
export interface HttpReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** HTTP/1.1 on so many connections, one call at a time on each; calls beyond that wait for a free one. */
export function createHttpSender(httpUrl: string, connections: number, readReply: (reply: HttpReply) => Reply): Sender {
  const { origin, pathname } = new URL(httpUrl);
  const base = pathname === '/' ? '' : pathname;
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    headersTimeout: requestTimeoutMs,
    bodyTimeout: requestTimeoutMs,
    connectTimeout: requestTimeoutMs,
  });
  return {
    send: (call) => exchange(pool, base, call).then(readReply).catch(noReply),
    close: () => {
      pool.destroy().catch(() => {});
    },
  };
}

/** The pool's own dispatch in place of its `request`, which wraps every body in a stream that nobody here needs. */
function exchange(pool: Pool, base: string, { path, headers, body }: LoadCall): Promise<HttpReply> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpReply>();
  let status = 0;
  let answered: HttpReply['headers'] = {};
  const pieces: Buffer[] = [];
  let controller: Dispatcher.DispatchController | undefined;
  let late: Error | undefined;
  // The pool's own timeouts begin when a call gets its connection, and a call may wait long for one.
  const timer = setTimeout(() => {
    late = Object.assign(new Error('no answer in time'), { code: 'timeout' });
    controller?.abort(late);
    reject(late);
  }, requestTimeoutMs);
  pool.dispatch(
    { path: `${base}${path}`, method: 'POST', headers, body },
    {
      onRequestStart(started) {
        controller = started;
        if (late !== undefined) started.abort(late);
      },
      onResponseStart(_controller, statusCode, responseHeaders) {
        status = statusCode;
        answered = responseHeaders;
      },
      onResponseData(_controller, piece) {
        pieces.push(piece);
      },
      onResponseEnd() {
        clearTimeout(timer);
        const [only] = pieces;
        const whole = pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
        resolve({ status, headers: answered, body: whole });
      },
      onResponseError(_controller, error) {
        clearTimeout(timer);
        reject(error);
      },
    },
  );
  return promise;
}
