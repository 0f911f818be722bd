import { Agent, request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Credentials } from '@gateway/domain/credentials';
import { createOrderPath } from './grpc-call.ts';
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
  /** Called every 5,000 inputs. */
  readonly onProgress?: () => void;
}

/** How often each response was given, and the inputs without a response or with an internal error. */
export interface FuzzReport {
  readonly responses: Readonly<Record<string, number>>;
  readonly bad: readonly { readonly number: number; readonly response: string }[];
}

/** Inputs in flight at the same time. */
const concurrency = 16;

/** After this long without a response an input counts as hung: far above the gateway's own limit for a call. */
const hungAfterMs = 20_000;

/**
 * gRPC statuses that are a bug of the gateway: UNKNOWN, DATA_LOSS, and INTERNAL with details. INTERNAL without details is how
 * gRPC libraries respond to a message that can't be decoded.
 */
const bugStatuses = new Set(['grpc 2', 'grpc 15', 'grpc 13 with details']);

/** Sends mutated inputs to a gateway. */
export async function fuzz(
  target: FuzzTarget,
  { seed, count, first = 0, onProgress }: FuzzOptions,
): Promise<FuzzReport> {
  const responses: Record<string, number> = {};
  const bad: { number: number; response: string }[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const session = openSession(target.grpcPort);
  let next = first;
  const work = async () => {
    while (next < first + count) {
      const number = next;
      next += 1;
      const response =
        number % 2 === 0
          ? await sendBody(target, agent, mutatedBody(seed, number))
          : await sendFrame(target, session.current(), mutatedFrame(seed, number));
      responses[response] = (responses[response] ?? 0) + 1;
      if (isBad(response)) bad.push({ number, response });
      if ((number + 1) % 5_000 === 0) onProgress?.();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  agent.destroy();
  session.close();
  return { responses, bad };
}

function isBad(response: string): boolean {
  return response.startsWith('http 5') || response.startsWith('no response') || bugStatuses.has(response);
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
    const sent = request(options, (incoming) => {
      incoming.resume().on('end', () => resolve(`http ${incoming.statusCode}`));
    });
    sent.on('error', (error) => resolve(`no response: ${error.message}`));
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
      resolve(status ?? (stream.rstCode === 0 ? 'no response: closed' : `reset ${stream.rstCode}`)),
    );
    stream.resume();
    stream.end(frame);
  });
}

/** One connection for all calls, opened again if the gateway ended it. */
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
