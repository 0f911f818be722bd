import { Agent, request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Credentials } from '@gateway/domain/credentials';
import { createOrderPath } from '../test/grpc-call.ts';
import { mutatedBody, mutatedFrame } from './mutations.ts';

export interface FuzzTarget {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly credentials: Credentials;
}

export interface FuzzOptions {
  readonly seed: number;
  /** Inputs to send: the even numbers are bodies of `POST /order`, the odd ones gRPC messages. */
  readonly count: number;
  /** The number of the first input. */
  readonly first?: number;
  readonly onProgress?: (sent: number) => void;
}

/** How often each answer was given, and the inputs whose answer was none or a fault of the gateway. */
export interface FuzzReport {
  readonly answers: Readonly<Record<string, number>>;
  readonly bad: readonly { readonly number: number; readonly answer: string }[];
}

/** Inputs under way at the same time. */
const concurrency = 16;

/** After this long without an answer an input counts as hung: twice the gateway's own time limit for a request. */
const hungAfterMs = 20_000;

/**
 * gRPC statuses that are a fault of the gateway: UNKNOWN, DATA_LOSS, and INTERNAL with details, which is the gateway's own word
 * for its bugs. INTERNAL without details is how gRPC libraries refuse a message that can't be decoded.
 */
const faultStatuses = new Set(['grpc 2', 'grpc 15', 'grpc 13 with details']);

/** Sends mutated inputs to a gateway. */
export async function fuzz(
  target: FuzzTarget,
  { seed, count, first = 0, onProgress }: FuzzOptions,
): Promise<FuzzReport> {
  const answers: Record<string, number> = {};
  const bad: { number: number; answer: string }[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const session = openSession(target.grpcPort);
  let next = first;
  const work = async () => {
    while (next < first + count) {
      const number = next;
      next += 1;
      const answer =
        number % 2 === 0
          ? await sendBody(target, agent, mutatedBody(seed, number))
          : await sendFrame(target, session.current(), mutatedFrame(seed, number));
      answers[answer] = (answers[answer] ?? 0) + 1;
      if (isBad(answer)) bad.push({ number, answer });
      if ((number + 1) % 5_000 === 0) onProgress?.(number + 1 - first);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  agent.destroy();
  session.close();
  return { answers, bad };
}

function isBad(answer: string): boolean {
  return answer.startsWith('http 5') || answer.startsWith('no answer') || faultStatuses.has(answer);
}

function sendBody({ httpPort, credentials }: FuzzTarget, agent: Agent, body: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const headers = {
      ...{ 'content-type': 'application/json', 'content-length': body.byteLength },
      ...{ 'x-client-id': credentials.clientId, 'x-client-secret': credentials.clientSecret },
    };
    const options = {
      host: '127.0.0.1',
      port: httpPort,
      path: '/order',
      method: 'POST',
      agent,
      headers,
      timeout: hungAfterMs,
    };
    const sent = request(options, (response) => {
      response.resume().on('end', () => resolve(`http ${response.statusCode}`));
    });
    sent.on('error', (error) => resolve(`no answer: ${error.message}`));
    sent.on('timeout', () => sent.destroy(new Error('hung')));
    sent.end(body);
  });
}

function sendFrame({ credentials }: FuzzTarget, session: ClientHttp2Session, frame: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request({
      ...{
        ':method': 'POST',
        ':path': createOrderPath,
        'content-type': 'application/grpc',
        te: 'trailers',
      },
      ...{ 'x-client-id': credentials.clientId, 'x-client-secret': credentials.clientSecret },
    });
    let status: string | undefined;
    const read = (headers: Record<string, unknown>) => {
      if (headers['grpc-status'] === undefined) return;
      const detailed = headers['grpc-status'] === '13' && headers['grpc-status-details-bin'] !== undefined;
      status = `grpc ${headers['grpc-status']}${detailed ? ' with details' : ''}`;
    };
    stream.on('response', read);
    stream.on('trailers', read);
    stream.on('error', () => {});
    stream.setTimeout(hungAfterMs, () => stream.close());
    stream.on('close', () =>
      resolve(status ?? (stream.rstCode === 0 ? 'no answer: closed' : `reset ${stream.rstCode}`)),
    );
    stream.resume();
    stream.end(frame);
  });
}

/** One connection for all calls, opened again where the gateway ended it. */
function openSession(port: number): { current(): ClientHttp2Session; close(): void } {
  let session: ClientHttp2Session | undefined;
  return {
    current() {
      if (session === undefined || session.closed || session.destroyed) {
        session = connect(`http://127.0.0.1:${port}`);
        session.on('error', () => {});
      }
      return session;
    },
    close: () => session?.destroy(),
  };
}
