import type { ClientHttp2Session } from 'node:http2';
import type { Credentials } from '@gateway/domain/credentials';
import { callHeaders, openSession, sendCall } from './grpc-call.ts';
import { mutatedBody, mutatedFrame } from './mutations.ts';
import { credentialHeaders, postOrder } from './send-order.ts';

export interface FuzzTarget {
  readonly url: string;
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
  const session = reopenedSession(target.grpcPort);
  let next = first;
  const work = async () => {
    while (next < first + count) {
      const number = next;
      next += 1;
      const response =
        number % 2 === 0
          ? await sendBody(target, mutatedBody(seed, number))
          : await sendFrame(target, session.current(), mutatedFrame(seed, number));
      responses[response] = (responses[response] ?? 0) + 1;
      if (isBad(response)) bad.push({ number, response });
      if ((number + 1) % 5_000 === 0) onProgress?.();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  session.close();
  return { responses, bad };
}

function isBad(response: string): boolean {
  return response.startsWith('http 5') || response.startsWith('no response') || bugStatuses.has(response);
}

async function sendBody(target: FuzzTarget, body: Uint8Array): Promise<string> {
  try {
    const response = await postOrder(target, body);
    await response.arrayBuffer();
    return `http ${response.status}`;
  } catch (error) {
    return `no response: ${error}`;
  }
}

async function sendFrame({ credentials }: FuzzTarget, session: ClientHttp2Session, bytes: Uint8Array): Promise<string> {
  const headers = { ...callHeaders, ...credentialHeaders(credentials) };
  const { trailers, closed } = await sendCall(session, { headers, chunks: [bytes], ends: true });
  const { 'grpc-status': status, 'grpc-status-details-bin': details } = trailers;
  if (status !== undefined) return `grpc ${status}${status === '13' && details !== undefined ? ' with details' : ''}`;
  return closed === 0 || closed === 'open' ? 'no response: closed' : `reset ${closed}`;
}

/** One connection for all calls, opened again if the gateway ended it. */
function reopenedSession(port: number): { current(): ClientHttp2Session; close(): void } {
  let session: ClientHttp2Session | undefined;
  return {
    current() {
      if (session === undefined || session.closed || session.destroyed) session = openSession(port);
      return session;
    },
    close: () => session?.destroy(),
  };
}
