import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { requestTimeoutMs } from '@gateway/fixtures/client';
import type { LoadCall } from '../make-calls.ts';
import { asHeaders, readGrpc } from './read-replies.ts';
import { noReply, type Reply, refusedReply, type Sender, timedOut } from './sender.ts';

/**
 * gRPC over so many HTTP/2 connections, in turn. Written on Node's http2 and not on a gRPC client, whose own work for each call
 * would limit the rate (docs/load-testing.md has the figures). A connection that ended is opened again by the next call.
 */
export function createGrpcSender(grpcAddress: string, connections: number, timeoutMs = requestTimeoutMs): Sender {
  const sessions: (ClientHttp2Session | undefined)[] = Array.from({ length: connections }, () => undefined);
  let turn = 0;
  const session = (): ClientHttp2Session => {
    turn = (turn + 1) % connections;
    const current = sessions[turn];
    if (current !== undefined && !current.closed && !current.destroyed) return current;
    const opened = connect(`http://${grpcAddress}`);
    // Its calls are told of it; without a listener it would end the process.
    opened.on('error', () => {});
    sessions[turn] = opened;
    return opened;
  };
  return {
    send(call) {
      try {
        return settled(session().request({ ...call.headers, ':method': 'POST', ':path': call.path }), call, timeoutMs);
      } catch (error) {
        return Promise.resolve(noReply(error));
      }
    },
    close() {
      for (const opened of sessions) opened?.destroy();
    },
  };
}

function settled(stream: ClientHttp2Stream, { body }: LoadCall, timeoutMs: number): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const fields: Record<string, unknown> = {};
  const pieces: Buffer[] = [];
  let failure: unknown;
  const keep = (received: Readonly<Record<string, unknown>>) => {
    Object.assign(fields, received);
  };
  stream.on('response', keep);
  stream.on('trailers', keep);
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  stream.on('error', (error) => {
    failure = error;
  });
  const tooLate = setTimeout(() => {
    // Told before the stream is closed, which waits for the connection where there is none yet.
    resolve(refusedReply(timedOut));
    stream.close(constants.NGHTTP2_CANCEL);
  }, timeoutMs);
  stream.on('close', () => {
    clearTimeout(tooLate);
    resolve(replyOf(stream, fields, pieces, failure));
  });
  stream.end(body);
  return promise;
}

function replyOf(
  stream: ClientHttp2Stream,
  fields: Readonly<Record<string, unknown>>,
  pieces: readonly Buffer[],
  failure: unknown,
): Reply {
  if (fields['grpc-status'] === undefined) {
    if (failure !== undefined) return noReply(failure);
    return refusedReply(stream.rstCode === 0 ? 'no gRPC status' : `no answer: HTTP/2 reset ${stream.rstCode}`);
  }
  const whole = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  const message = whole.length >= 5 ? whole.subarray(5) : undefined;
  return readGrpc(message, asHeaders(fields), fields['idempotent-replayed'] === 'true');
}
